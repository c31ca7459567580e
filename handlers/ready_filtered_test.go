// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// extra is a handler that makes one more ConfigMap while its when is true.
func extra(id, when string) string {
	return "  - id: " + id + `
    when: ` + when + `
    apply:
      ` + id + `:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${self.metadata.name}-extra"}
        data: {by: ` + id + `}
`
}

// text sets spec.text.
func (a *app) text(text string) {
	a.Update(apps, "default", "me", func(o *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(o.Object, text, "spec", "text")
	})
	a.Advance(5 * time.Second) // a child goes over to another handler a moment later
}

// TestReadyOfHandlersWithOppositeWhens holds that a handler which is filtered keeps an object from being ready only while it has
// children, which may be of an earlier generation: of two handlers with opposite whens one is filtered always.
func TestReadyOfHandlersWithOppositeWhens(t *testing.T) {
	inApp(t, "", extra("day", "self.spec.text != 'night'")+extra("night", "self.spec.text == 'night'"), func(a *app) {
		a.rollOut(2, 2)
		a.says("by day", allReady)
		a.text("night")
		a.says("by night", allReady)
		if got := text(a.Get("configmaps.v1", "default", "me-extra"), "data.by"); got != "night" {
			t.Errorf("the child is by %s", got)
		}
		a.text("day")
		a.says("by day again", allReady)
	})
	inApp(t, "", extra("day", "self.spec.text != 'night'"), func(a *app) {
		a.rollOut(2, 2)
		a.says("before the when is false", allReady)
		a.text("night")
		a.says("while children are left as they are", "Unknown Filtered: The when at operator.yaml:26 is false, so the children stay as they are; generation 1 was applied last.")
	})
}

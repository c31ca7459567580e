// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestInAnEngineADeletionFindsChildrenOfALostRecord holds that labelled children of an owner that has lost its
// record go with it when it was deleted while the operator did not run, if templates have them. Other objects that claim
// to be children stay, and an Event names them.
func TestInAnEngineADeletionFindsChildrenOfALostRecord(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		p := operate(t, c, `{
			a: {ownership: labelled, template: {apiVersion: x.io/v1, kind: Thing, metadata: {name: a}}},
			b: {ownership: labelled, forEach: "${self.spec.users}", template: {apiVersion: x.io/v1, kind: Thing,
				metadata: {name: "${children.a.metadata.name}-${item}"}}},
			c: {ownership: labelled, includeWhen: self.spec.users.size() == 2, template: {apiVersion: x.io/v1, kind: Thing, metadata: {name: c}}}}`, "{users: [u, v]}")
		see(t, c, "at first", "Thing a, Thing a-u, Thing a-v, Thing c")
		p.Kill()
		c.Update(foos, "default", "me", func(o *unstructured.Unstructured) {
			notes := o.GetAnnotations()
			delete(notes, "x.handwerk.dev/children")
			o.SetAnnotations(notes)
			o.Object["spec"] = map[string]any{"users": []any{"u"}}
		})
		c.Delete(foos, "default", "me")
		p.Restart()
		c.Advance(5 * time.Minute)
		see(t, c, "after the deletion", "Thing a-v, Thing c")
		if c.Get(foos, "default", "me") != nil {
			t.Error("the object is still there")
		}
		var events []string
		for _, e := range c.Events() {
			events = append(events, fmt.Sprint(e))
		}
		if text := strings.Join(events, "\n"); !strings.Contains(text, "ChildrenLeft") || !strings.Contains(text, "2 objects") ||
			!strings.Contains(text, "x.io/Thing/default/a-v x.io/Thing/default/c") {
			t.Errorf("events %s", text)
		}
	})
}

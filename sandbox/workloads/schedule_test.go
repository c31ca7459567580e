// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAPodWaitsForItsSchedulingGates(t *testing.T) {
	run(t, func(t *testing.T, s stage) {
		s.create(`
apiVersion: v1
kind: Pod
metadata: {name: gated}
spec: {schedulingGates: [{name: example.com/gate}], containers: [{name: c, image: c}]}`)
		node := func() string {
			out, _, _ := unstructured.NestedString(s.get("Pod", "gated").Object, "spec", "nodeName")
			return out
		}
		s.advance(time.Hour)
		if got := node(); got != "" || s.writes.Load() != 1 {
			t.Errorf("a gated Pod is on node %q after %d writes, want none after that of the node", got, s.writes.Load())
		}
		s.patch("Pod", "gated", `{"spec":{"schedulingGates":null}}`)
		s.advance(time.Second)
		if got := node(); got != "node-0" {
			t.Errorf("a Pod without gates is on node %q, want node-0", got)
		}
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAFilterOverOldIsEvaluatedForEachChange holds that a filter in YAML which compares with what was is asked about each
// change: also about those before it held for the first time, through a restart, and with the object as it was before that
// change.
func TestAFilterOverOldIsEvaluatedForEachChange(t *testing.T) {
	tests := map[string]string{
		"of one field":          `{id: look, causes: [update], field: spec.phase, when: old.spec.phase == 'a' && self.spec.phase == 'b', set: {status: {seen: "${self.spec.turn}"}}}`,
		"by what differs":       `{id: look, causes: [update], when: "diff.exists(d, d.path == 'spec.phase' && d.old == 'a' && d.new == 'b')", set: {status: {seen: "${self.spec.turn}"}}}`,
		"with one that chooses": `{id: look, causes: [update], labels: {tier: gold}, when: old.spec.phase == 'a' && self.spec.phase == 'b', set: {status: {seen: "${self.spec.turn}"}}}`,
		"of new objects, too":   `{id: look, causes: [create, update], when: "cause == 'update' && old.spec.phase == 'a' && self.spec.phase == 'b'", set: {status: {seen: "${self.spec.turn}"}}}`,
	}
	for name, handler := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayYAML(t, `{resource: foos.v1.example.com, handlers: [`+handler+`]}`, func(s *scene.Stage) {
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: default, labels: {tier: gold}}, spec: {phase: x, turn: first}}`)
				s.Launch()
				s.Settle()
				turn := func(phase, turn, want string) {
					t.Helper()
					s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
						o.Object["spec"] = map[string]any{"phase": phase, "turn": turn}
					})
					s.Settle()
					got, _, _ := unstructured.NestedString(s.Web().Object, "status", "seen")
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("after phase %s in turn %s it has run for another turn (-want +got):\n%s", phase, turn, diff)
					}
				}
				turn("a", "second", "")
				turn("b", "third", "third")
				turn("a", "fourth", "third")
				turn("c", "fifth", "third")
				turn("b", "sixth", "third")
				turn("a", "seventh", "third")
				s.Process.Restart()
				s.Settle()
				turn("b", "eighth", "eighth")
			})
		})
	}
}

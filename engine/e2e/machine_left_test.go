// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// machineOf is an operator of works with these machines, and more of the resource.
func machineOf(more, machines string) string {
	return "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: law}\nresources:\n  - resource: " + works + more + "\n    machine:" + machines
}

// theirCondition sets a condition of a work that is somebody else's, with the reason that one of a machine has.
func (s *stage) theirCondition(t *testing.T, name, reason string) {
	t.Helper()
	theirs := `[{"op":"add","path":"/status/conditions/-","value":{"type":"Theirs","status":"True","reason":"` + reason + `","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}}]`
	_, err := plane.Dynamic().Resource(s.works.Name).Namespace(s.ns).Patch(t.Context(), name, types.JSONPatchType, []byte(theirs), metav1.PatchOptions{FieldManager: "theirs"}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

func stated(want ...string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return slices.Equal(conditionsOf(o), want) }
}

// TestMachineOfAWorkThatLeaves holds that a work that leaves the selector has neither progress nor conditions of machines any more, but
// those of others, and begins again when it comes back: with states of deletion and without.
func TestMachineOfAWorkThatLeaves(t *testing.T) {
	t.Parallel()
	for name, deletion := range map[string]string{
		"without states of deletion": "",
		"with states of deletion":    "      deletion: [{name: Leaving, transitions: [{to: Gone}]}, {name: Gone, terminal: true}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.begin(t, parsed(t, machineOf("\n    selector: {matchLabels: {in: \"yes\"}}", `
      states:
        - {name: One, condition: Going, transitions: [{to: Two, when: self.spec.value == 'b'}]}
        - {name: Two, terminal: true}
`+deletion), s.ns))
			w := work("w", "a")
			w.SetLabels(map[string]string{"in": "yes"})
			s.works.Create(t, w)
			s.works.Await(t, "w", "its beginning", stated("Going True One", "Ready False One"))
			s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
			s.works.Await(t, "w", "its end", stated("Going False Two", "Ready True Two"))
			s.theirCondition(t, "w", "Two")
			mark := plane.Mark(t)
			s.works.Patch(t, "w", `{"metadata":{"labels":{"in":null}},"spec":{"value":"a"}}`)
			left := s.works.Await(t, "w", "that it was let go", func(o *unstructured.Unstructured) bool {
				return stated("Theirs True Two")(o) && len(o.GetFinalizers()) == 0
			})
			for _, field := range []string{"state", "stateSince", "stateUID"} {
				if value := status(left, field); value != "" {
					t.Errorf("status.%s is %q", field, value)
				}
			}
			if way := wayOf(left); len(way) > 0 {
				t.Errorf("history %v", way)
			}
			s.works.Patch(t, "w", `{"metadata":{"labels":{"in":"yes"}}}`)
			back := s.works.Await(t, "w", "its beginning again", stated("Going True One", "Ready False One", "Theirs True Two"))
			if way := wayOf(back); len(way) > 0 {
				t.Errorf("history %v", way)
			}
			want := []string{"patch works/status w 200", "patch works/status w 200"}
			if deletion != "" {
				want = []string{"patch works/status w 200", "patch works w 200", "patch works w 200", "patch works/status w 200"}
			}
			if diff := cmp.Diff(want, s.writes(t, mark, "w")); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionsOfAnEarlierMachineGo holds that a version of the operator takes away the conditions that none of its machines sets, and an
// earlier version set, once: of a state's condition, of a machine that is there no more, and of one of several that is alone now.
// Others' stay, and so does the progress of a machine that is gone.
func TestConditionsOfAnEarlierMachineGo(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	running := s.begin(t, parsed(t, machineOf("", `
      - {name: one, states: [{name: Up, condition: Going, transitions: [{to: Down, when: self.spec.value == 'b'}]}, {name: Down, terminal: true}]}
      - {name: two, states: [{name: Open, condition: Opened, terminal: true}]}`), s.ns))
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "all conditions", stated("Going True Up", "OneReady False Up", "Opened True Open", "Ready False Up", "TwoReady True Open"))
	s.theirCondition(t, "w", "Up")
	s.quiesceYAML(t, running, "w")
	running.Stop(t)
	for life, want := range [][]string{{"patch works w 200", "patch works/status w 200"}, nil} { // the finalizer, and once the conditions
		mark := plane.Mark(t)
		running = s.begin(t, parsed(t, machineOf("", ` {name: one, states: [{name: Up, transitions: [{to: Down, when: self.spec.value == 'b'}]}, {name: Down, terminal: true}], deletion: [{name: Gone, terminal: true}]}`), s.ns))
		o := s.works.Await(t, "w", "what is left", stated("Ready False Up", "Theirs True Up"))
		if state, _, _ := unstructured.NestedString(o.Object, "status", "two", "state"); state != "Open" {
			t.Errorf("the book of the machine that is gone says %q", state)
		}
		s.quiesceYAML(t, running, "w")
		if diff := cmp.Diff(want, s.writes(t, mark, "w")); diff != "" {
			t.Errorf("writes of process %d after the change (-want +got):\n%s", life+1, diff)
		}
		running.Stop(t)
	}
}

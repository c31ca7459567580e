// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestAppliedIsTheSumAndWhatIsOutOfDateGoes: two handlers that apply have a condition each and one that sums them up;
// a version of the operator in which one is left takes theirs away, once, and leaves those of others.
func TestAppliedIsTheSumAndWhatIsOutOfDateGoes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	child := func(id, name, value string) string {
		return fmt.Sprintf("\n      - {id: %s, apply: {%s: {apiVersion: v1, kind: ConfigMap, metadata: {name: w-%s}, data: {v: %s}}}}", id, name, name, value)
	}
	operator := func(handlers ...string) string {
		return "apiVersion: handwerk.dev/v1alpha1\nkind: Operator\nmetadata: {name: law}\nresources:\n  - resource: " + works + "\n    handlers:" + strings.Join(handlers, "")
	}
	one := child("children", "one", "a")
	running := s.begin(t, parsed(t, operator(one, child("more", "two", `"${self.spec.value}"`)), s.ns))
	s.works.Create(t, work("w", "a"))
	stated := func(want ...string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return slices.Equal(conditionsOf(o), want) }
	}
	s.works.Await(t, "w", "three conditions", stated("Applied True AllApplied", "ChildrenApplied True AllApplied", "MoreApplied True AllApplied"))
	// One that has the name and the reason of ours, and is somebody else's.
	theirs := `[{"op":"add","path":"/status/conditions/-","value":{"type":"TheirsApplied","status":"True","reason":"Waiting","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}}]`
	_, err := plane.Dynamic().Resource(s.works.Name).Namespace(s.ns).Patch(t.Context(), "w", types.JSONPatchType, []byte(theirs), metav1.PatchOptions{FieldManager: "theirs"}, "status")
	if err != nil {
		t.Fatal(err)
	}
	s.quiesceYAML(t, running, "w")
	running.Stop(t)
	for life, want := range [][]string{{"delete configmaps w-two 200", "patch works/status w 200"}, nil} {
		mark := plane.Mark(t)
		running = s.begin(t, parsed(t, operator(one), s.ns))
		s.works.Await(t, "w", "what is left", stated("Applied True AllApplied", "TheirsApplied True Waiting"))
		s.quiesceYAML(t, running, "w")
		if diff := cmp.Diff(want, s.writes(t, mark, "w")); diff != "" {
			t.Errorf("writes of process %d after the change (-want +got):\n%s", life+1, diff)
		}
		running.Stop(t)
	}
}

// quiesceYAML waits until an operator that calls no handler of the test's has handled an object and is at rest.
func (s *stage) quiesceYAML(t *testing.T, running *cluster.Running, name string) {
	t.Helper()
	running.Await(t, `"msg"="handler succeeded" "resource"="works.v1.e2e.example.com" "namespace"="`+s.ns+`" "name"="`+name+`"`)
	waitFor(t, "the operator to have no pass under way", func() bool { return running.Idle(t, works) })
}

// conditionsOf are type, status and reason of an object's conditions, sorted.
func conditionsOf(o *unstructured.Unstructured) (out []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		out = append(out, fmt.Sprint(c["type"], " ", c["status"], " ", c["reason"]))
	}
	slices.Sort(out)
	return out
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAMarkedObjectIsTakenOver: an earlier version of the operator has marked an object as handled in status.observedGeneration. The
// API server shows the mark by its field manager. No handler creates the object again, and the mark is the operator's own number then.
func TestAMarkedObjectIsTakenOver(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	define := func(r *dsl.Resource) {
		r.OnCreate("made", s.Note("made", nil))
		r.On(changes, "h", s.Note("h", nil), dsl.Needs("patch", "self/status"))
	}
	mark := func(name, manager string) {
		number := map[string]any{"status": map[string]any{"observedGeneration": 1}}
		s.works.By(manager).Patch(t, name, mergeOf(t, number), "status")
	}
	for _, name := range []string{"w", "copy"} {
		s.works.Create(t, work(name, "a"))
	}
	uid := string(s.works.Get(t, "w").GetUID())
	mark("w", "law/observed/"+uid)
	mark("copy", "law/observed/"+uid)

	running := s.play(t, define)
	s.quiesce(t, "h")
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	taken := s.works.Await(t, "w", "its change to be handled", func(o *unstructured.Unstructured) bool {
		n, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return n == 2 && handledWith(o, "b")
	})
	if marks := func(e metav1.ManagedFieldsEntry) bool { return strings.Contains(e.Manager, "/observed/") }; slices.ContainsFunc(taken.GetManagedFields(), marks) {
		t.Errorf("the mark is there still: %v", taken.GetManagedFields())
	}
	running.Stop(t)
	s.play(t, define)
	s.quiesce(t, "h")
	for name, want := range map[string][]string{"w": {"h update b"}, "copy": {"made create a", "h create a"}} {
		if diff := cmp.Diff(want, s.said("", name)); diff != "" {
			t.Errorf("calls for %s (-want +got):\n%s", name, diff)
		}
	}
}

// mergeOf returns a merge patch as text.
func mergeOf(t *testing.T, patch map[string]any) string {
	t.Helper()
	text, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

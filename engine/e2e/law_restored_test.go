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

// TestAnObjectRestoredWithItsStatusIsNew: a backup is restored with its status, and with its managedFields as the API server kept
// them for the object that was there before. The number in status.observedGeneration is that object's, so handlers create the new
// one, once.
func TestAnObjectRestoredWithItsStatusIsNew(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	define := func(r *dsl.Resource) {
		r.ObservedGeneration = true
		r.OnCreate("made", s.Note("made", nil))
		r.On(changes, "h", s.Note("h", nil), dsl.Field("spec"), dsl.NoOld())
	}
	observed := func(generation int64) func(o *unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			n, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			return n == generation && o.GetGeneration() == generation
		}
	}
	running := s.play(t, define)
	s.works.Create(t, work("w", "a"))
	was := s.works.Await(t, "w", "its creation to be handled", observed(1))
	running.Stop(t)
	s.works.Delete(t, "w")
	s.works.AwaitGone(t, "w")

	backup := s.works.By("backup")
	backup.Create(t, work("w", "a"))
	backup.Patch(t, "w", mergeOf(t, map[string]any{"status": was.Object["status"]}), "status")
	restored := backup.Patch(t, "w", mergeOf(t, map[string]any{"metadata": map[string]any{"managedFields": was.GetManagedFields()}}))
	marks := func(e metav1.ManagedFieldsEntry) bool {
		return strings.HasSuffix(e.Manager, "/observed/"+string(was.GetUID())) && strings.Contains(e.FieldsV1.GetRawString(), "f:observedGeneration")
	}
	if !observed(1)(restored) || !slices.ContainsFunc(restored.GetManagedFields(), marks) {
		t.Fatalf("the object has no copy of the mark: %v", restored)
	}

	running = s.play(t, define)
	s.quiesce(t, "h")
	running.Stop(t)
	want := []string{"made create a", "h create a", "made create a", "h create a"}
	if diff := cmp.Diff(want, s.said("", "w")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	running = s.play(t, define)
	s.quiesce(t, "h")
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	s.works.Await(t, "w", "its change to be handled, which the number alone shows", func(o *unstructured.Unstructured) bool {
		return observed(2)(o) && len(o.GetAnnotations()) == 0
	})
	running.Stop(t)
	s.play(t, define)
	s.quiesce(t, "h")
	if diff := cmp.Diff(append(want, "h update b"), s.said("", "w")); diff != "" {
		t.Errorf("calls after a restart (-want +got):\n%s", diff)
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

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestTheLastRequestMarksAnObjectAsHandled: the API server takes one of the two requests of a reconcile and not the other, and the
// operator crashes. What its handler wants is there in the end, also where it makes another generation.
func TestTheLastRequestMarksAnObjectAsHandled(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fails string
		wants func(r *dsl.Request)
		has   func(o *unstructured.Unstructured) string
	}{
		"the one to the object, with a label":      {"works", labelled, labelOf},
		"the one to the status, with a label":      {"works/status", labelled, labelOf},
		"the one to the object, with another spec": {"works", respecified, otherOf},
		"the one to its status, with another spec": {"works/status", respecified, otherOf},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			define := func(r *dsl.Resource) {
				r.On(changes, "h", s.Note("h", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("value", spec(r.Object, "value"))
					test.wants(r)
					return nil
				}), dsl.Field("spec"), dsl.Needs("patch", "self/status"))
			}
			done := func(o *unstructured.Unstructured) bool {
				n, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
				return n == o.GetGeneration() && test.has(o) == spec(o, "value") && status(o, "value") == spec(o, "value")
			}
			running := s.play(t, define)
			s.works.Create(t, work("w", "a"))
			s.works.Await(t, "w", "its creation to be handled", done)

			broken := s.proxy.Inject(cluster.When{Match: cluster.On("patch", test.fails)}, cluster.Answer(apierrors.NewInternalError(errors.New("broken"))))
			s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
			s.proxy.Await(t, 2, func(r cluster.Request) bool { return cluster.On("patch", test.fails)(r) && r.Code == 500 })
			running.Stop(t)
			broken.Remove()
			if o := s.works.Get(t, "w"); done(o) {
				t.Errorf("nothing failed: %v", o)
			}
			s.play(t, define)
			s.works.Await(t, "w", "its change to be handled", done)
			s.quiesce(t, "h")
			mark := plane.Mark(t)
			s.play(t, define).Stop(t)
			if diff := cmp.Diff([]string(nil), s.writes(t, mark, "w")); diff != "" {
				t.Errorf("writes after another restart (-want +got):\n%s", diff)
			}
		})
	}
}

func labelled(r *dsl.Request) { r.Patch.Label("value", spec(r.Object, "value")) }

func labelOf(o *unstructured.Unstructured) string { return o.GetLabels()["value"] }

func respecified(r *dsl.Request) { r.Patch.Set("spec.other", spec(r.Object, "value")) }

func otherOf(o *unstructured.Unstructured) string { return spec(o, "other") }

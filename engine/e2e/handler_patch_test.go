// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestATransformationMeetsAnotherWriter holds, with a real API server's conflict, that an entry that somebody adds to a list
// while a handler runs and one that the handler adds are both there, and that the result of the handler is kept by the same
// requests.
func TestATransformationMeetsAnotherWriter(t *testing.T) {
	t.Parallel()
	s, begun, goOn := newStage(t), make(chan struct{}), make(chan struct{})
	s.play(t, func(r *dsl.Resource) {
		r.On(changes, "add", s.Note("add", func(_ context.Context, r *dsl.Request) error {
			if r.Cause == dsl.Create {
				close(begun)
				<-goOn
			}
			r.Patch.Transform(func(o *unstructured.Unstructured) error {
				hosts, _, err := unstructured.NestedStringSlice(o.Object, "spec", "hosts")
				if err != nil || slices.Contains(hosts, "ours") {
					return err
				}
				return unstructured.SetNestedStringSlice(o.Object, append(hosts, "ours"), "spec", "hosts")
			})
			r.Patch.JSON(dsl.JSONOp{Op: "add", Path: "/metadata/labels", Value: map[string]any{"added": "yes"}})
			r.Result(map[string]any{"value": r.Object.Object["spec"].(map[string]any)["value"]})
			return nil
		}), dsl.Field("spec.value"))
	})
	s.works.Create(t, work("w", "a"))
	<-begun
	s.works.Patch(t, "w", `{"spec":{"hosts":["theirs"]}}`)
	close(goOn)
	o := s.works.Await(t, "w", "the operator's write", settled)
	if diff := cmp.Diff([]any{"theirs", "ours"}, o.Object["spec"].(map[string]any)["hosts"]); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"add": map[string]any{"value": "a"}}, o.Object["status"]); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got := o.GetLabels()["added"]; got != "yes" {
		t.Errorf("the label is %q", got)
	}
	if diff := cmp.Diff([]string{"add create a"}, s.said("", "w")); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// keepElsewhere declares handlers that apply a labelled ConfigMap in another namespace when spec.value changes, and set the
// status; that write to the object when spec.other changes; that hear of children; and that remove all children in the end.
func (s *stage) keepElsewhere(other string) func(*dsl.Resource) {
	return func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.On(changes, "level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
			if r.Object.GetName() != "w" {
				return nil
			}
			child := configMap("w-child", "x")
			child["metadata"] = map[string]any{"name": "w-child", "namespace": other}
			_, err := r.Children.Apply(ctx, child, dsl.ChildSpec{Handler: "level", Name: "settings", Ownership: dsl.Labelled})
			if err == nil {
				r.Patch.SetStatus("value", spec(r.Object, "value"))
			}
			return err
		}), dsl.Field("spec.value"))
		r.OnField("spec.other", "other", func(_ context.Context, r *dsl.Request) error {
			r.Patch.Annotate("example.com/other", spec(r.Object, "other"))
			return nil
		})
		r.OnChild("heard", s.Note("heard", nil))
		r.OnDelete("leave", func(ctx context.Context, r *dsl.Request) error {
			all, err := r.Children.All()
			for _, c := range all {
				err = errors.Join(err, r.Children.Remove(ctx, c))
			}
			if err == nil && len(all) > 0 {
				err = dsl.Waiting("children to be gone", 0)
			}
			return err
		})
	}
}

// leavesNothing deletes w and waits until its child is gone, which lives when w is gone too early.
func (s *stage) leavesNothing(t *testing.T, maps *cluster.Objects) {
	t.Helper()
	s.works.Delete(t, "w")
	s.works.AwaitGone(t, "w")
	if o := maps.Get(t, "w-child"); o != nil && o.GetDeletionTimestamp() == nil {
		t.Errorf("the child is left behind: %v", o.Object["metadata"])
	}
}

// TestAChildWhoseLabelWasOffStaysItsOwners: the label is taken off, a reconcile that does not apply the child sees that, and the status
// of the reconcile that puts it on again is refused once.
func TestAChildWhoseLabelWasOffStaysItsOwners(t *testing.T) {
	t.Parallel()
	s, other := newStage(t), plane.Namespace(t)
	maps := plane.Objects(configMaps, other)
	s.wide(t, other, s.keepElsewhere(other))
	s.works.Create(t, work("w", "a"))
	s.works.Await(t, "w", "the first status", func(o *unstructured.Unstructured) bool { return status(o, "value") == "a" && settled(o) })
	s.quiesce(t, "level")
	heard := len(s.Of("heard", "w"))
	maps.Patch(t, "w-child", `{"metadata":{"labels":{"`+ownerLabel+`":null}}}`)
	s.Await(t, heard+1, "heard", "w")
	s.quiesce(t, "level")

	fault := cluster.Answer(apierrors.NewInternalError(errors.New("etcdserver: request timed out")))
	s.proxy.Inject(cluster.When{Match: cluster.On("patch", "works/status"), Times: 1}, fault)
	s.works.Patch(t, "w", `{"spec":{"value":"b"}}`)
	s.works.Await(t, "w", "the second status", func(o *unstructured.Unstructured) bool { return status(o, "value") == "b" })
	if maps.Get(t, "w-child").GetLabels()[ownerLabel] == "" {
		t.Error("the label is not back")
	}
	s.leavesNothing(t, maps)
}

// TestAnOldCacheTakesNoChildOffTheRecord: a child is made while its watch brings nothing, nothing is heard of its kind until the
// cache counts as old, and its owner is written meanwhile.
func TestAnOldCacheTakesNoChildOffTheRecord(t *testing.T) {
	t.Parallel()
	s, other := newStage(t), plane.Namespace(t)
	maps := plane.Objects(configMaps, other)
	s.wide(t, other, s.keepElsewhere(other))
	ofMaps := func(r cluster.Request) bool {
		return cluster.On("watch", "configmaps")(r) || cluster.On("list", "configmaps")(r)
	}
	hold := s.proxy.HoldWatches(cluster.On("watch", "configmaps"))
	s.works.Create(t, work("w", "a"))
	maps.Await(t, "w-child", "being made", func(*unstructured.Unstructured) bool { return true })
	away := s.proxy.Inject(cluster.When{Match: ofMaps}, cluster.Answer(apierrors.NewServiceUnavailable("away")))
	if s.proxy.CutWatches(cluster.On("watch", "configmaps")) == 0 {
		t.Fatal("no watch was cut")
	}
	s.works.Patch(t, "w", `{"spec":{"other":"p"}}`)
	s.works.Await(t, "w", "a pass on the old cache", func(o *unstructured.Unstructured) bool { return o.GetAnnotations()["example.com/other"] == "p" })
	away.Remove()
	hold.Release()
	s.leavesNothing(t, maps)
}

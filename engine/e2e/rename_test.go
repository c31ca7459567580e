// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestAnOperatorIsRenamed: what an operator has left under its earlier name on an object, its Deployment and a labelled
// ConfigMap in another namespace is its own under the new one.
func TestAnOperatorIsRenamed(t *testing.T) {
	t.Parallel()
	s, other := newStage(t), plane.Namespace(t)
	maps, sets := plane.Objects(configMaps, other), plane.Objects(deployments, s.ns)
	version := func(name string, more bool, was ...string) *cluster.Running {
		op := dsl.New(name)
		op.Was, op.Scope.Namespaces = was, []string{s.ns, other}
		op.Resource(works, func(r *dsl.Resource) {
			r.Owns(deployments)
			r.Owns(configMaps)
			r.OnCreate("made", s.Note("made"))
			r.OnReconcile("keep", s.Note("keep", func(ctx context.Context, r *dsl.Request) error { return keepBoth(ctx, r, other, more) }))
			r.OnDelete("left", s.Note("left", func(ctx context.Context, r *dsl.Request) error {
				all, err := r.Children.All()
				for _, one := range all {
					err = errors.Join(err, r.Children.Remove(ctx, one))
				}
				return err
			}))
		})
		return s.begin(t, op)
	}
	before := version("foo", true)
	owner := s.works.Create(t, work("w", "a"))
	s.Await(t, 1, "keep", "w")
	set := sets.Await(t, "w", "being made", func(*unstructured.Unstructured) bool { return true })
	config := maps.Await(t, "w", "being made", func(*unstructured.Unstructured) bool { return true })
	s.works.Await(t, "w", "being marked", func(o *unstructured.Unstructured) bool {
		return len(o.GetFinalizers()) == 1 && o.GetAnnotations()["foo.handwerk.dev/state"] != ""
	})
	before.Stop(t)
	s.begun = nil

	mark := plane.Mark(t)
	calls := s.Len()
	renamed := version("bar", false, "foo")
	moved := func(o *unstructured.Unstructured) bool { return !strings.Contains(asJSON(t, o.Object), "foo") }
	after := []*unstructured.Unstructured{
		s.works.Await(t, "w", "having no mark of the earlier name", moved),
		sets.Await(t, "w", "having no mark of the earlier name", func(o *unstructured.Unstructured) bool {
			return moved(o) && !strings.Contains(asJSON(t, o.Object), "minReadySeconds")
		}),
		maps.Await(t, "w", "having no mark of the earlier name", func(o *unstructured.Unstructured) bool {
			return moved(o) && !strings.Contains(asJSON(t, o.Object), "dropped")
		}),
	}
	for i, o := range []*unstructured.Unstructured{owner, set, config} {
		if o.GetUID() != after[i].GetUID() {
			t.Errorf("%s was made again", o.GetKind())
		}
		marksOf(t, after[i])
	}
	if want := []string{"bar.handwerk.dev/finalizer"}; !cmp.Equal(want, after[0].GetFinalizers()) {
		t.Errorf("the finalizers are %v", after[0].GetFinalizers())
	}
	s.quiesce(t, "made")
	for _, c := range s.Of("", "w")[calls:] {
		if c.Handler != "keep" || c.Cause == dsl.Create {
			t.Errorf("%s was called", c)
		}
	}
	for _, w := range s.writes(t, mark, "w") {
		if strings.HasPrefix(w, "delete") || strings.HasPrefix(w, "create") || strings.Contains(w, "201") {
			t.Errorf("there was a write %s", w)
		}
	}

	renamed.Stop(t)
	s.begun = nil
	mark = plane.Mark(t)
	version("bar", false, "foo")
	s.quiesce(t, "made")
	if writes := s.writes(t, mark, "w"); len(writes) > 0 {
		t.Errorf("a restart wrote %v", writes)
	}
	s.works.Delete(t, "w")
	s.works.AwaitGone(t, "w")
	maps.AwaitGone(t, "w")
	sets.AwaitGone(t, "w")
}

// keepBoth keeps a Deployment, and a ConfigMap in another namespace; with more they have fields that a later version drops.
func keepBoth(ctx context.Context, r *dsl.Request, other string, more bool) error {
	if r.Object.GetName() != "w" {
		return nil
	}
	labels := map[string]any{"app": "w"}
	spec := map[string]any{
		"replicas": 0, "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
		},
	}
	data := map[string]any{"value": "x"}
	if more {
		spec["minReadySeconds"], data["dropped"] = 5, "later"
	}
	_, owned := r.Children.Apply(ctx, map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "w"}, "spec": spec},
		dsl.ChildSpec{Handler: "keep", Name: "set"})
	_, labelled := r.Children.Apply(ctx, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "w", "namespace": other}, "data": data,
	}, dsl.ChildSpec{Handler: "keep", Name: "config", Ownership: dsl.Labelled})
	return errors.Join(owned, labelled)
}

// marksOf fails the test where a child's marks are owned by an updater: a label that is applied no more would stay then.
func marksOf(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	for _, e := range o.GetManagedFields() {
		updates := e.Operation == metav1.ManagedFieldsOperationUpdate && e.Manager == "bar" && o.GetKind() != "Work"
		if updates && strings.Contains(e.FieldsV1.GetRawString(), "bar.handwerk.dev") {
			t.Errorf("%s has marks of an updater: %s", o.GetKind(), e.FieldsV1.GetRawString())
		}
	}
}

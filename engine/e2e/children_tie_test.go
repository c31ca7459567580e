// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

const (
	ownerLabel   = "law.handwerk.dev/owner"
	appliedMark  = "law.handwerk.dev/applied"
	childMark    = "law.handwerk.dev/child"
	recordMark   = "law.handwerk.dev/children"
	labelledName = "level/settings"
)

// wide runs an operator that works in the stage's namespace and another one.
func (s *stage) wide(t *testing.T, other string, define func(*dsl.Resource)) *cluster.Running {
	t.Helper()
	op := s.operator(define)
	op.Scope.Namespaces = append(op.Scope.Namespaces, other)
	return s.begin(t, op)
}

// TestChildElsewhere: a child in another namespace than its owner's is made, kept, made again, left
// alone by the garbage collector, and removed.
func TestChildElsewhere(t *testing.T) {
	t.Parallel()
	s, other := newStage(t), plane.Namespace(t)
	maps := plane.Objects(configMaps, other)
	running := s.wide(t, other, func(r *dsl.Resource) {
		r.Owns(configMaps)
		r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
			if r.Object.GetName() != "w" {
				return nil
			}
			if spec(r.Object, "value") == "none" {
				all, err := r.Children.All()
				for _, c := range all {
					err = errors.Join(err, r.Children.Remove(ctx, c))
				}
				return err
			}
			child := configMap("w-child", "x")
			child["metadata"] = map[string]any{"name": "w-child", "namespace": other}
			_, err := r.Children.Apply(ctx, child, dsl.ChildSpec{Handler: "level", Name: "settings", Ownership: dsl.Labelled})
			return err
		}))
	})
	mark := plane.Mark(t)
	owner := s.works.Create(t, work("w", "a"))
	made := maps.Await(t, "w-child", "being made", func(*unstructured.Unstructured) bool { return true })
	if made.GetLabels()[ownerLabel] != string(owner.GetUID()) || made.GetAnnotations()[childMark] != labelledName || len(made.GetOwnerReferences()) > 0 {
		t.Errorf("the child is %v", made.Object["metadata"])
	}
	s.quiesce(t, "level")
	maps.Patch(t, "w-child", `{"data":{"value":"drifted"}}`)
	maps.Await(t, "w-child", "being put right", func(o *unstructured.Unstructured) bool { return dataValue(o) == "x" })
	maps.Delete(t, "w-child")
	again := maps.Await(t, "w-child", "being made again", func(o *unstructured.Unstructured) bool { return o.GetUID() != made.GetUID() })
	running.AwaitReady(t)
	s.works.Patch(t, "w", `{"spec":{"value":"none"}}`)
	maps.AwaitGone(t, "w-child")
	s.quiesce(t, "level")
	want := []string{"patch configmaps 201", "patch configmaps 200", "patch configmaps 201", "delete configmaps 200"}
	var got []string
	for _, w := range plane.Writes(t, s.user.Name, mark).Of("configmaps", "w-child") {
		w.Namespace, w.Name = "", ""
		got = append(got, trimmed(w))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s; the last child was %s", diff, again.GetUID())
	}
}

func trimmed(w cluster.Write) string {
	text := w.String()
	return text[:len(text)-len(" / 200")] + text[len(text)-len(" 200"):]
}

func dataValue(o *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(o.Object, "data", "value")
	return value
}

// TestAdoption: an object without an owner is taken when that is allowed, with what others have set; what
// another has is not.
func TestAdoption(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		adopt       dsl.Adoption
		ownership   dsl.Ownership
		owned, want bool
	}{
		"not asked for":                   {dsl.AdoptNever, dsl.Owned, false, false},
		"asked for":                       {dsl.AdoptIfUnowned, dsl.Owned, false, true},
		"asked for, to be labelled":       {dsl.AdoptIfUnowned, dsl.Labelled, false, true},
		"asked for, but owned by another": {dsl.AdoptIfUnowned, dsl.Owned, true, false},
		"the same, to be labelled":        {dsl.AdoptIfUnowned, dsl.Labelled, true, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, outcome := newStage(t), make(chan error, 100)
			object := &unstructured.Unstructured{Object: configMap("w-child", "theirs")}
			object.Object["data"].(map[string]any)["more"] = "y"
			if test.owned {
				another := s.works.Create(t, work("another", "a"))
				object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(another, another.GroupVersionKind())})
			}
			before := s.maps.Create(t, object)
			s.play(t, func(r *dsl.Resource) {
				r.Owns(configMaps)
				r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
					if r.Object.GetName() != "w" {
						return nil
					}
					_, err := r.Children.Apply(ctx, configMap("w-child", "x"), dsl.ChildSpec{Adopt: test.adopt, Ownership: test.ownership})
					outcome <- err
					return err
				}))
			})
			s.works.Create(t, work("w", "a"))
			if err := <-outcome; (err == nil) != test.want || !test.want && !errors.Is(err, dsl.ErrNotOwned) {
				t.Fatalf("applying got %v", err)
			}
			after := s.maps.Get(t, "w-child")
			if !test.want {
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("the object (-before +after):\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(map[string]any{"value": "x", "more": "y"}, after.Object["data"]); diff != "" || after.GetUID() != before.GetUID() {
				t.Errorf("what was adopted (-want +got):\n%s", diff)
			}
			s.quiesce(t, "level")
			s.maps.Patch(t, "w-child", `{"data":{"value":"drifted"}}`)
			s.maps.Await(t, "w-child", "being put right", func(o *unstructured.Unstructured) bool { return dataValue(o) == "x" })
		})
	}
}

// TestTiesChange: with each new configuration the child is tied by one request, and its owner gets or loses the finalizer by
// one more; it stays the same object, and is let go whole at the end.
func TestTiesChange(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	child := dsl.ChildSpec{Handler: "level", Name: "settings"}
	define := func(child dsl.ChildSpec, remove bool) func(*dsl.Resource) {
		return func(r *dsl.Resource) {
			r.Owns(configMaps)
			r.OnReconcile("level", s.Note("level", func(ctx context.Context, r *dsl.Request) error {
				if r.Object.GetName() != "w" {
					return nil
				}
				if !remove {
					_, err := r.Children.Apply(ctx, configMap("w-child", "x"), child)
					return err
				}
				all, err := r.Children.All()
				for _, c := range all {
					err = errors.Join(err, r.Children.Remove(ctx, c))
				}
				return err
			}))
		}
	}
	running := s.play(t, define(child, false))
	owner := s.works.Create(t, work("w", "a"))
	made := s.maps.Await(t, "w-child", "being made", func(*unstructured.Unstructured) bool { return true })
	for _, next := range []struct {
		ownership       dsl.Ownership
		policy          dsl.DeletePolicy
		owned, labelled bool
	}{
		{dsl.Labelled, "", false, true}, {dsl.Owned, "", true, false}, {dsl.Owned, dsl.RetainChild, false, true},
		{dsl.Unowned, "", false, false}, {dsl.Owned, dsl.OrphanChild, true, false},
	} {
		running.Stop(t)
		want := []string{"patch configmaps w-child 200"}
		switch enters := next.labelled && s.works.Get(t, "w").GetAnnotations()[recordMark] == ""; {
		case enters || next.policy == dsl.OrphanChild:
			want = []string{"patch works w 200", want[0]}
		case next.ownership == dsl.Owned && next.policy == "": // the garbage collector sees to it
			want = append(want, "patch works w 200")
		}
		mark := plane.Mark(t)
		child.Ownership, child.OnDelete = next.ownership, next.policy
		running = s.play(t, define(child, false))
		s.quiesce(t, "level")
		now := s.maps.Get(t, "w-child")
		if now.GetUID() != made.GetUID() || metav1.IsControlledBy(now, owner) != next.owned || (now.GetLabels()[ownerLabel] != "") != next.labelled {
			t.Errorf("with %+v the child is %v", next, now.Object["metadata"])
		}
		got := s.writes(t, mark, "w")
		if next.policy == dsl.RetainChild { // what the record lists may be gone when the child enters it, or not yet
			owners := func(w string) bool { return w == "patch works w 200" }
			want, got = slices.DeleteFunc(want, owners), slices.DeleteFunc(got, owners)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("writes with %+v (-want +got):\n%s", next, diff)
		}
	}
	running.Stop(t)
	s.play(t, define(child, true))
	free := s.maps.Await(t, "w-child", "being let go", func(o *unstructured.Unstructured) bool { return o.GetAnnotations()[appliedMark] == "" })
	if free.GetUID() != made.GetUID() || dataValue(free) != "x" || len(free.GetOwnerReferences())+len(free.GetLabels())+len(free.GetAnnotations()) > 0 {
		t.Errorf("what was let go is %v", free.Object)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const ownerLabel = "op.handwerk.dev/owner"

// recorded is the write of web's record.
const recorded = "patch foos default/web"

// keeps returns an operator that keeps a ConfigMap as the spec says, which may change while it does
// not run.
func keeps(spec *dsl.ChildSpec, namespace string) func(*dsl.Resource, *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.OwnsKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		foo.OnReconcile("keep", j.Note("keep", func(ctx context.Context, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue(namespace, "x"), *spec)
			return err
		}))
	}
}

// wantValue checks the ConfigMap.
func wantValue(s *scene.Stage, namespace, want string) *unstructured.Unstructured {
	s.T.Helper()
	s.Settle()
	o := s.Get(scene.ConfigMaps, namespace, "web")
	if o == nil {
		s.T.Fatal("there is no ConfigMap")
	}
	if got, _, _ := unstructured.NestedString(o.Object, "data", "value"); got != want {
		s.T.Errorf("the value is %q, want %q", got, want)
	}
	return o
}

// TestAChildInAnotherNamespaceIsKept holds that a child in another namespace is kept as one in the owner's is.
func TestAChildInAnotherNamespaceIsKept(t *testing.T) {
	labelled := &dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := keeps(labelled, "elsewhere")
	begin := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Begin()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it has a label and no owner reference": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			o := wantValue(s, "elsewhere", "x")
			if len(o.GetOwnerReferences()) > 0 || o.GetLabels()[ownerLabel] != string(s.Web().GetUID()) ||
				o.GetAnnotations()[ownerLabel] != "example.com/Foo/default/web" || o.GetAnnotations()[scene.ChildAnnotation] != "keep/settings" {
				s.T.Errorf("the child is %v", o.Object["metadata"])
			}
		}},
		"its own echo is no news, and drift is put back": {Operator: operator, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.Create(scene.Web)
			s.Called("keep create")
			s.Wrote(recorded, "patch configmaps elsewhere/web")
			s.ChangeConfigMap("elsewhere", scene.SpoilValue)
			s.Called("keep child")
			s.Wrote("patch configmaps elsewhere/web")
			wantValue(s, "elsewhere", "x")
		}},
		"when it is deleted it is made again": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.Called("keep child")
			wantValue(s, "elsewhere", "x")
		}},
		"a label or an annotation that is taken off is put back": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			for _, take := range []func(*unstructured.Unstructured){
				func(o *unstructured.Unstructured) { o.SetLabels(nil) },
				func(o *unstructured.Unstructured) {
					notes := o.GetAnnotations()
					delete(notes, ownerLabel)
					o.SetAnnotations(notes)
				},
			} {
				s.ChangeConfigMap("elsewhere", take)
				s.Called("keep child")
				s.Wrote("patch configmaps elsewhere/web")
			}
		}},
		"a restart costs nothing": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Process.Restart()
			s.Wrote()
		}},
		"a crash between its creation and the echo costs nothing either": {Operator: operator, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.HoldWatches(scene.ConfigMaps)
			s.Process.CrashAfter(2)
			s.Create(scene.Web)
			s.Settle()
			s.Process.Kill()
			s.Writes()
			s.ReleaseWatches(scene.ConfigMaps)
			s.Process.Restart()
			wantValue(s, "elsewhere", "x")
			s.Wrote()
		}},
		"a crash between its entry in the record and its creation leaves it to be made": {Operator: operator, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.Process.CrashAfter(1)
			s.Create(scene.Web)
			s.Settle()
			s.Process.Kill()
			s.Wrote(recorded)
			s.Process.Restart()
			wantValue(s, "elsewhere", "x")
			s.Wrote("patch configmaps elsewhere/web")
		}},
		"an answer that is lost makes no second one": {Operator: operator, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.LoseNext("patch", scene.ConfigMaps)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			wantValue(s, "elsewhere", "x")
			s.Wrote(recorded, "patch configmaps elsewhere/web")
		}},
		"no pass begins while the cache is behind it": {Operator: operator, Play: func(s *scene.Stage) {
			s.CreateElsewhere()
			s.Launch()
			s.HoldWatches(scene.ConfigMaps)
			s.Create(scene.Web)
			s.Called("keep create")
			s.Resize(2)
			s.Called()
			s.ReleaseWatches(scene.ConfigMaps)
			s.Called("keep update")
			s.Wrote(recorded, "patch configmaps elsewhere/web")
		}},
		"a copy of its annotation is no child": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			o := wantValue(s, "elsewhere", "x")
			s.Create(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": "copy", "namespace": "elsewhere", "annotations": o.GetAnnotations()}})
			s.Called()
		}},
		"the child of an earlier owner of the name is not taken": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Process.Kill()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) }) // by a person's hand
			s.Remove()
			s.Create(scene.Web)
			s.Process.Restart()
			s.Called("keep resume")
			s.Forget()
			s.ChangeConfigMap("elsewhere", scene.SpoilValue)
			s.Called()
			s.Wrote()
			s.Delete(scene.ConfigMaps, "elsewhere", "web")
			s.Advance(time.Minute)
			wantValue(s, "elsewhere", "x")
		}},
	})
}

// TestATieChangesWithOneRequest holds that a child whose tie is to be another one gets the other tie by one request, and is
// not made again. One more holds the owner, or lets it go, where the engine has to see to the child at the owner's deletion,
// or not any more.
func TestATieChangesWithOneRequest(t *testing.T) {
	spec := &dsl.ChildSpec{}
	scene.PlayAll(t, map[string]scene.Scenario{"from each to the next": {Operator: keeps(spec, "default"), Play: func(s *scene.Stage) {
		named := func(o dsl.Ownership, d dsl.DeletePolicy) dsl.ChildSpec {
			return dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: o, OnDelete: d}
		}
		*spec = named(dsl.Owned, "")
		s.Launch()
		made := s.Create(scene.Web)
		s.Forget()
		uid := wantValue(s, "default", "x").GetUID()
		for _, next := range []struct {
			spec            dsl.ChildSpec
			owned, labelled bool
		}{
			{named(dsl.Labelled, ""), false, true},
			{named(dsl.Owned, ""), true, false},
			{named(dsl.Owned, dsl.RetainChild), false, true},
			{named(dsl.Labelled, ""), false, true},
			{named(dsl.Labelled, dsl.OrphanChild), false, true},
			{named(dsl.Unowned, ""), false, false},
			{named(dsl.Owned, dsl.OrphanChild), true, false},
			{named(dsl.Unowned, ""), false, false},
			{named(dsl.Owned, dsl.RetainChild), false, true},
			{named(dsl.Owned, ""), true, false},
		} {
			*spec = next.spec
			want := []string{"patch configmaps default/web"}
			held := slices.Contains(s.Web().GetFinalizers(), scene.Finalizer)
			holds := next.spec.OnDelete == dsl.OrphanChild || next.spec.Ownership == dsl.Labelled
			switch {
			case next.labelled && !strings.Contains(s.Web().GetAnnotations()[scene.RecordAnnotation], "ConfigMap"), holds && !held:
				want = []string{recorded, want[0]}
			case held && !holds:
				want = append(want, recorded)
			}
			s.Process.Restart()
			s.Wrote(want...)
			o := wantValue(s, "default", "x")
			if o.GetUID() != uid || metav1.IsControlledBy(o, made) != next.owned || (o.GetLabels()[ownerLabel] != "") != next.labelled {
				s.T.Errorf("with %+v the child is %v", next.spec, o.Object["metadata"])
			}
			s.Process.Restart()
			s.Wrote()
		}
	}}})
}

// TestAnUnownedChildIsAppliedAndForgotten holds that what is not owned is applied and then forgotten.
func TestAnUnownedChildIsAppliedAndForgotten(t *testing.T) {
	unowned := &dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Unowned}
	undeclared := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("keep", j.Note("keep", func(ctx context.Context, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), *unowned)
			return err
		}))
	}
	both := map[string]func(*dsl.Resource, *kit.Journal){"of a kind that is watched": keeps(unowned, "elsewhere"), "of another kind": undeclared}
	for name, operator := range both {
		scene.PlayAll(t, map[string]scene.Scenario{
			name + ", it is put right when the object is looked at": {Operator: operator, Play: func(s *scene.Stage) {
				s.CreateElsewhere()
				s.Begin()
				s.ChangeConfigMap("elsewhere", scene.SpoilValue)
				s.Called()
				s.Resize(2)
				s.Called("keep update")
				s.Wrote("patch configmaps elsewhere/web")
				wantValue(s, "elsewhere", "x")
				s.Resize(3)
				s.Process.Restart()
				s.Wrote()
			}},
			name + ", it is not taken from another": {Operator: operator, Play: func(s *scene.Stage) {
				s.CreateElsewhere()
				s.Begin()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`)
				s.Called("keep create")
				s.Wrote()
				s.Process.Restart()
				s.Wrote()
			}},
			name + ", one that somebody made is not taken": {Operator: operator, Play: func(s *scene.Stage) {
				s.CreateElsewhere()
				s.Launch()
				s.Create(scene.ConfigMapWithValue("elsewhere", "theirs"))
				s.Settle()
				s.Create(scene.Web)
				wantValue(s, "elsewhere", "theirs")
				s.Wrote()
			}},
		})
	}
}

// TestAdoptTakesOnlyObjectsWithoutAnOwner holds what is taken when adopt says so, and what never is.
func TestAdoptTakesOnlyObjectsWithoutAnOwner(t *testing.T) {
	owned := &dsl.ChildSpec{Adopt: dsl.AdoptIfUnowned}
	labelled := &dsl.ChildSpec{Adopt: dsl.AdoptIfUnowned, Ownership: dsl.Labelled}
	theirs := func(s *scene.Stage) *unstructured.Unstructured {
		defer s.Settle()
		return s.Create(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "web"}, "data": map[string]any{"value": "theirs", "more": "y"}})
	}
	takes := func(s *scene.Stage, writes ...string) {
		s.Launch()
		uid := theirs(s).GetUID()
		s.Create(scene.Web)
		s.Called("keep create")
		s.Wrote(writes...)
		o := wantValue(s, "default", "x")
		if more, _, _ := unstructured.NestedString(o.Object, "data", "more"); more != "y" || o.GetUID() != uid {
			s.T.Errorf("the child is %v", o.Object)
		}
		s.ChangeConfigMap("default", scene.SpoilValue)
		s.Called("keep child")
		wantValue(s, "default", "x")
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object without an owner is taken":            {Operator: keeps(owned, "default"), Play: func(s *scene.Stage) { takes(s, "patch configmaps default/web") }},
		"an object without an owner is taken by a label": {Operator: keeps(labelled, "default"), Play: func(s *scene.Stage) { takes(s, recorded, "patch configmaps default/web") }},
		"what an earlier controller made for the object is its own, without a word of adoption": {Operator: keeps(&dsl.ChildSpec{}, "default"), Play: func(s *scene.Stage) {
			s.Create(scene.Web)
			uid := s.Web().GetUID()
			s.Create(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": "theirs"},
				"metadata": map[string]any{"name": "web", "ownerReferences": []any{map[string]any{
					"apiVersion": "example.com/v1", "kind": "Foo", "name": "web", "uid": string(uid), "controller": true}}}})
			s.Forget()
			s.Launch()
			s.Wrote("patch configmaps default/web")
			if refs := wantValue(s, "default", "x").GetOwnerReferences(); len(refs) != 1 || refs[0].UID != uid {
				s.T.Errorf("the child is owned by %v", refs)
			}
		}},
		"one that changed since is looked at again": {Operator: keeps(owned, "default"), Play: func(s *scene.Stage) {
			s.Launch()
			theirs(s)
			s.HoldWatches(scene.ConfigMaps)
			s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) })
			s.Create(scene.Web)
			s.Wrote("patch configmaps default/web")
			if o := wantValue(s, "default", "x"); o.GetLabels()["a"] != "b" {
				s.T.Errorf("what was changed since is gone: %v", o.GetLabels())
			}
			s.ReleaseWatches(scene.ConfigMaps)
		}},
		"one that changes while it is taken is looked at again": {Operator: keeps(owned, "default"), Play: func(s *scene.Stage) {
			s.Launch()
			theirs(s)
			s.FailNext("patch", scene.ConfigMaps, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "web", scene.ErrAgain))
			s.Create(scene.Web)
			s.Settle()
			wantValue(s, "default", "theirs")
			s.Advance(time.Minute)
			wantValue(s, "default", "x")
		}},
		"what another object controls is not": {Operator: keeps(owned, "default"), Play: func(s *scene.Stage) {
			s.Launch()
			theirs(s)
			s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) {
				ref, yes := reference("Pod", "p", "u-9"), true
				ref.Controller = &yes
				o.SetOwnerReferences([]metav1.OwnerReference{ref})
			})
			s.Settle()
			s.Create(scene.Web)
			wantValue(s, "default", "theirs")
			s.Wrote()
		}},
	})
}

// reference is an owner reference that does not control.
func reference(kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: uid}
}

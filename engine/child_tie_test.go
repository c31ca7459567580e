// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
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
)

const (
	configMaps      = "configmaps.v1"
	ownerLabel      = "op.handwerk.dev/owner"
	childAnnotation = "op.handwerk.dev/child"
	record          = "op.handwerk.dev/children"
	// recorded is the write of web's record.
	recorded = "patch foos default/web"
)

// settings is a desired ConfigMap in a namespace.
func settings(namespace, value string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "web", "namespace": namespace}, "data": map[string]any{"value": value}}
}

// keeps returns an operator that keeps a ConfigMap as the spec says, which may change while it does
// not run.
func keeps(spec *dsl.ChildSpec, namespace string) func(*dsl.Resource, *journal) {
	return func(foo *dsl.Resource, j *journal) {
		foo.OwnsKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		foo.OnReconcile("keep", j.Note("keep", func(ctx ctx, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, settings(namespace, "x"), *spec)
			return err
		}))
	}
}

// elsewhere prepares the namespace of children outside their owner's.
func (s *stage) elsewhere() {
	s.t.Helper()
	s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}`)
}

// drift changes the ConfigMap in a namespace.
func (s *stage) drift(namespace string, change func(*unstructured.Unstructured)) {
	s.t.Helper()
	s.Settle()
	s.Update(configMaps, namespace, "web", change)
}

// spoil changes what is desired.
func spoil(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"value": "drifted"} }

// value checks the ConfigMap.
func (s *stage) value(namespace, want string) *unstructured.Unstructured {
	s.t.Helper()
	s.Settle()
	o := s.Get(configMaps, namespace, "web")
	if o == nil {
		s.t.Fatal("there is no ConfigMap")
	}
	if got, _, _ := unstructured.NestedString(o.Object, "data", "value"); got != want {
		s.t.Errorf("the value is %q, want %q", got, want)
	}
	return o
}

// TestLabelledChildren holds that a child in another namespace is kept as one in the owner's is.
func TestLabelledChildren(t *testing.T) {
	labelled := &dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := keeps(labelled, "elsewhere")
	begin := func(s *stage) {
		s.elsewhere()
		s.begin()
	}
	scenarios(t, map[string]scenario{
		"it has a label and no owner reference": {operator, func(s *stage) {
			begin(s)
			o := s.value("elsewhere", "x")
			if len(o.GetOwnerReferences()) > 0 || o.GetLabels()[ownerLabel] != string(s.web().GetUID()) ||
				o.GetAnnotations()[ownerLabel] != "example.com/Foo/default/web" || o.GetAnnotations()[childAnnotation] != "keep/settings" {
				s.t.Errorf("the child is %v", o.Object["metadata"])
			}
		}},
		"its own echo is no news, and drift is put back": {operator, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.Create(web)
			s.Called("keep create")
			s.Wrote(recorded, "patch configmaps elsewhere/web")
			s.drift("elsewhere", spoil)
			s.Called("keep child")
			s.Wrote("patch configmaps elsewhere/web")
			s.value("elsewhere", "x")
		}},
		"when it is deleted it is made again": {operator, func(s *stage) {
			begin(s)
			s.Delete(configMaps, "elsewhere", "web")
			s.Called("keep child")
			s.value("elsewhere", "x")
		}},
		"a label or an annotation that is taken off is put back": {operator, func(s *stage) {
			begin(s)
			for _, take := range []func(*unstructured.Unstructured){
				func(o *unstructured.Unstructured) { o.SetLabels(nil) },
				func(o *unstructured.Unstructured) {
					notes := o.GetAnnotations()
					delete(notes, ownerLabel)
					o.SetAnnotations(notes)
				},
			} {
				s.drift("elsewhere", take)
				s.Called("keep child")
				s.Wrote("patch configmaps elsewhere/web")
			}
		}},
		"a restart costs nothing": {operator, func(s *stage) {
			begin(s)
			s.Process.Restart()
			s.Wrote()
		}},
		"a crash between its creation and the echo costs nothing either": {operator, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.HoldWatches(configMaps)
			s.Process.CrashAfter(2)
			s.Create(web)
			s.Settle()
			s.Process.Kill()
			s.Writes()
			s.ReleaseWatches(configMaps)
			s.Process.Restart()
			s.value("elsewhere", "x")
			s.Wrote()
		}},
		"a crash between its entry in the record and its creation leaves it to be made": {operator, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.Process.CrashAfter(1)
			s.Create(web)
			s.Settle()
			s.Process.Kill()
			s.Wrote(recorded)
			s.Process.Restart()
			s.value("elsewhere", "x")
			s.Wrote("patch configmaps elsewhere/web")
		}},
		"an answer that is lost makes no second one": {operator, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.LoseNext("patch", configMaps)
			s.Create(web)
			s.Advance(time.Minute)
			s.value("elsewhere", "x")
			s.Wrote(recorded, "patch configmaps elsewhere/web")
		}},
		"no pass begins while the cache is behind it": {operator, func(s *stage) {
			s.elsewhere()
			s.Launch()
			s.HoldWatches(configMaps)
			s.Create(web)
			s.Called("keep create")
			s.size(2)
			s.Called()
			s.ReleaseWatches(configMaps)
			s.Called("keep update")
			s.Wrote(recorded, "patch configmaps elsewhere/web")
		}},
		"a copy of its annotation is nobody's child": {operator, func(s *stage) {
			begin(s)
			o := s.value("elsewhere", "x")
			s.Create(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": "copy", "namespace": "elsewhere", "annotations": o.GetAnnotations()}})
			s.Called()
		}},
		"the child of an earlier owner of the name is not taken": {operator, func(s *stage) {
			begin(s)
			s.Process.Kill()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) }) // by a person's hand
			s.remove()
			s.Create(web)
			s.Process.Restart()
			s.Called("keep resume")
			s.Forget()
			s.drift("elsewhere", spoil)
			s.Called()
			s.Wrote()
			s.Delete(configMaps, "elsewhere", "web")
			s.Advance(time.Minute)
			s.value("elsewhere", "x")
		}},
	})
}

// TestTiesChange holds that a child whose tie is to be another one gets the other tie by one request, and is not made again. One
// more holds the owner, or lets it go, where the engine has to see to the child at the owner's deletion, or not any more.
func TestTiesChange(t *testing.T) {
	spec := &dsl.ChildSpec{}
	scenarios(t, map[string]scenario{"from each to the next": {keeps(spec, "default"), func(s *stage) {
		named := func(o dsl.Ownership, d dsl.DeletePolicy) dsl.ChildSpec {
			return dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: o, OnDelete: d}
		}
		*spec = named(dsl.Owned, "")
		s.Launch()
		made := s.Create(web)
		s.Forget()
		uid := s.value("default", "x").GetUID()
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
			held := slices.Contains(s.web().GetFinalizers(), finalizer)
			holds := next.spec.OnDelete == dsl.OrphanChild || next.spec.Ownership == dsl.Labelled
			switch {
			case next.labelled && !strings.Contains(s.web().GetAnnotations()[record], "ConfigMap"), holds && !held:
				want = []string{recorded, want[0]}
			case held && !holds:
				want = append(want, recorded)
			}
			s.Process.Restart()
			s.Wrote(want...)
			o := s.value("default", "x")
			if o.GetUID() != uid || metav1.IsControlledBy(o, made) != next.owned || (o.GetLabels()[ownerLabel] != "") != next.labelled {
				s.t.Errorf("with %+v the child is %v", next.spec, o.Object["metadata"])
			}
			s.Process.Restart()
			s.Wrote()
		}
	}}})
}

// TestUnownedChildren holds that what is not owned is applied and then forgotten.
func TestUnownedChildren(t *testing.T) {
	unowned := &dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Unowned}
	undeclared := func(foo *dsl.Resource, j *journal) {
		foo.OnReconcile("keep", j.Note("keep", func(ctx ctx, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, settings("elsewhere", "x"), *unowned)
			return err
		}))
	}
	both := map[string]func(*dsl.Resource, *journal){"of a kind that is watched": keeps(unowned, "elsewhere"), "of another kind": undeclared}
	for name, operator := range both {
		scenarios(t, map[string]scenario{
			name + ", it is put right when the object is looked at": {operator, func(s *stage) {
				s.elsewhere()
				s.begin()
				s.drift("elsewhere", spoil)
				s.Called()
				s.size(2)
				s.Called("keep update")
				s.Wrote("patch configmaps elsewhere/web")
				s.value("elsewhere", "x")
				s.size(3)
				s.Process.Restart()
				s.Wrote()
			}},
			name + ", it is not taken from another": {operator, func(s *stage) {
				s.elsewhere()
				s.begin()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}, spec: {size: 1}}`)
				s.Called("keep create")
				s.Wrote()
				s.Process.Restart()
				s.Wrote()
			}},
			name + ", one that somebody made is not taken": {operator, func(s *stage) {
				s.elsewhere()
				s.Launch()
				s.Create(settings("elsewhere", "theirs"))
				s.Settle()
				s.Create(web)
				s.value("elsewhere", "theirs")
				s.Wrote()
			}},
		})
	}
}

// TestAdoption holds what is taken when adopt says so, and what never is.
func TestAdoption(t *testing.T) {
	owned := &dsl.ChildSpec{Adopt: dsl.AdoptIfUnowned}
	labelled := &dsl.ChildSpec{Adopt: dsl.AdoptIfUnowned, Ownership: dsl.Labelled}
	theirs := func(s *stage) *unstructured.Unstructured {
		defer s.Settle()
		return s.Create(map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "web"}, "data": map[string]any{"value": "theirs", "more": "y"}})
	}
	takes := func(s *stage, writes ...string) {
		s.Launch()
		uid := theirs(s).GetUID()
		s.Create(web)
		s.Called("keep create")
		s.Wrote(writes...)
		o := s.value("default", "x")
		if more, _, _ := unstructured.NestedString(o.Object, "data", "more"); more != "y" || o.GetUID() != uid {
			s.t.Errorf("the child is %v", o.Object)
		}
		s.drift("default", spoil)
		s.Called("keep child")
		s.value("default", "x")
	}
	scenarios(t, map[string]scenario{
		"what nobody owns is taken":            {keeps(owned, "default"), func(s *stage) { takes(s, "patch configmaps default/web") }},
		"what nobody owns is taken by a label": {keeps(labelled, "default"), func(s *stage) { takes(s, recorded, "patch configmaps default/web") }},
		"what an earlier controller made for the object is its own, without a word of adoption": {keeps(&dsl.ChildSpec{}, "default"), func(s *stage) {
			s.Create(web)
			uid := s.web().GetUID()
			s.Create(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": "theirs"},
				"metadata": map[string]any{"name": "web", "ownerReferences": []any{map[string]any{
					"apiVersion": "example.com/v1", "kind": "Foo", "name": "web", "uid": string(uid), "controller": true}}}})
			s.Forget()
			s.Launch()
			s.Wrote("patch configmaps default/web")
			if refs := s.value("default", "x").GetOwnerReferences(); len(refs) != 1 || refs[0].UID != uid {
				s.t.Errorf("the child is owned by %v", refs)
			}
		}},
		"one that changed since is looked at again": {keeps(owned, "default"), func(s *stage) {
			s.Launch()
			theirs(s)
			s.HoldWatches(configMaps)
			s.Update(configMaps, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "b"}) })
			s.Create(web)
			s.Wrote("patch configmaps default/web")
			if o := s.value("default", "x"); o.GetLabels()["a"] != "b" {
				s.t.Errorf("what was changed since is gone: %v", o.GetLabels())
			}
			s.ReleaseWatches(configMaps)
		}},
		"one that changes while it is taken is looked at again": {keeps(owned, "default"), func(s *stage) {
			s.Launch()
			theirs(s)
			s.FailNext("patch", configMaps, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "web", errAgain))
			s.Create(web)
			s.Settle()
			s.value("default", "theirs")
			s.Advance(time.Minute)
			s.value("default", "x")
		}},
		"what another object controls is not": {keeps(owned, "default"), func(s *stage) {
			s.Launch()
			theirs(s)
			s.Update(configMaps, "default", "web", func(o *unstructured.Unstructured) {
				ref, yes := reference("Pod", "p", "u-9"), true
				ref.Controller = &yes
				o.SetOwnerReferences([]metav1.OwnerReference{ref})
			})
			s.Settle()
			s.Create(web)
			s.value("default", "theirs")
			s.Wrote()
		}},
	})
}

// reference is an owner reference that does not control.
func reference(kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: name, UID: uid}
}

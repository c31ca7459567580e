// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

const attacker = "attacker"

// forgeChild makes what whoever may create a ConfigMap in a namespace can make of it: everything that a
// child of web has, but a line in web's record.
func forgeChild(s *scene.Stage, namespace, name, title string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	s.T.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": "forged"}}}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{ownerLabel: string(s.Web().GetUID())})
	u.SetAnnotations(map[string]string{
		ownerLabel: "example.com/Foo/default/web", scene.ChildAnnotation: title, "op.handwerk.dev/applied": "handwerk:forged",
	})
	u.SetFinalizers([]string{"example.com/hold"})
	for _, c := range change {
		c(u)
	}
	return s.Create(u.Object)
}

// referToWeb gives an object web as its owner, and no label.
func referToWeb(s *scene.Stage, u *unstructured.Unstructured) {
	u.SetLabels(nil)
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(s.Web(), s.Web().GroupVersionKind())})
}

// labelAsRetained gives an object the label of what is retained for web.
func labelAsRetained(u *unstructured.Unstructured) {
	name, _ := ownership.ParsePlace("example.com/Foo/default/web")
	u.SetLabels(map[string]string{ownerLabel: name.Retained()})
}

// listedInRecord returns what web's record lists, as it is on web.
func listedInRecord(s *scene.Stage) string {
	s.T.Helper()
	_, list, _ := strings.Cut(s.Web().GetAnnotations()[scene.RecordAnnotation], `"children":`)
	return strings.ReplaceAll(strings.TrimSuffix(list, "}"), " keep/settings", "")
}

// keepsInNamespaces returns an operator that keeps a ConfigMap in each of the first namespaces, so many as the
// size of the object says.
func keepsInNamespaces(spec dsl.ChildSpec, namespaces ...string) func(*dsl.Resource, *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("keep", j.Note("keep", func(ctx context.Context, r *dsl.Request) error {
			size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
			all, err := r.Children.All()
			if err != nil {
				return err
			}
			for _, c := range all {
				if !slices.Contains(namespaces[:size.(int64)], c.Object.GetNamespace()) {
					if err := r.Children.Remove(ctx, c); err != nil {
						return err
					}
				}
			}
			var wanted []dsl.DesiredChild
			for _, ns := range namespaces[:size.(int64)] {
				wanted = append(wanted, dsl.DesiredChild{ChildSpec: spec, Object: scene.ConfigMapWithValue(ns, "x")})
			}
			if err := r.Children.Enter(ctx, wanted...); err != nil {
				j.Add(err.Error())
				return err
			}
			for _, ns := range namespaces[:size.(int64)] {
				if _, err := r.Children.Apply(ctx, scene.ConfigMapWithValue(ns, "x"), spec); err != nil {
					j.Add(err.Error())
					return err
				}
			}
			return nil
		}))
		foo.OnDelete("leave", j.Note("leave", func(ctx context.Context, r *dsl.Request) error {
			all, err := r.Children.All()
			for _, c := range all {
				if err := r.Children.Remove(ctx, c); err != nil {
					return err
				}
			}
			if len(all) > 0 {
				return dsl.Waiting("children to be gone", 0)
			}
			return err
		}))
		foo.OnUpdate("list", scene.NotesChildren(j), dsl.NoOld())
	}
}

// TestAForgedChildBelongsToNoOwner holds that no user gives another's object a child by creating one somewhere.
func TestAForgedChildBelongsToNoOwner(t *testing.T) {
	labelled := dsl.ChildSpec{Handler: "keep", Name: "settings", Ownership: dsl.Labelled}
	operator := keepsInNamespaces(labelled, "elsewhere", attacker)
	begin := func(s *scene.Stage) {
		s.CreateElsewhere()
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: attacker}}`)
		s.Begin()
	}
	const genuine = "keep/settings/=elsewhere/web:labelled,delete"
	ways := map[string]func(*scene.Stage) []func(*unstructured.Unstructured){
		"by the label of its uid": func(*scene.Stage) []func(*unstructured.Unstructured) { return nil },
		"by the label of its name": func(*scene.Stage) []func(*unstructured.Unstructured) {
			return []func(*unstructured.Unstructured){labelAsRetained}
		},
		"by an owner reference": func(s *scene.Stage) []func(*unstructured.Unstructured) {
			return []func(*unstructured.Unstructured){func(u *unstructured.Unstructured) { referToWeb(s, u) }}
		},
	}
	all := map[string]scene.Scenario{}
	for way, of := range ways {
		for when, before := range map[string]bool{"": false, ", found at the start": true} {
			all["one that is forged "+way+when+" wakes no handler, is seen by none, and holds nothing up"] = scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
				begin(s)
				forgeChild(s, attacker, "aaa", "keep/settings", of(s)...)
				s.Called()
				s.Update(scene.ConfigMaps, attacker, "aaa", scene.SpoilValue)
				s.Called()
				if before {
					s.Process.Restart()
					s.Forget()
				}
				s.Set("blue", "spec", "color")
				s.Called("keep update", genuine)
				s.Remove()
				s.Advance(2 * time.Minute)
				s.WantGone()
				if o := s.Get(scene.ConfigMaps, attacker, "aaa"); o == nil || o.GetDeletionTimestamp() != nil || s.Get(scene.ConfigMaps, "elsewhere", "web") != nil {
					s.T.Error("the wrong one is gone")
				}
			}}
		}
	}
	maps.Copy(all, map[string]scene.Scenario{
		"one in the place of a child to come is left alone, and reported": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			forged := forgeChild(s, attacker, "web", "keep/settings")
			s.Settle() // or it may be seen too late, which is the next one
			s.Resize(2)
			s.Called("keep update", "applying ConfigMap attacker/web: it exists and is not owned by this object; it has the label of this object, "+
				"but is not in its inventory of children (annotation op.handwerk.dev/children): delete it, or give the child another name",
				genuine)
			s.Wrote("patch foos default/web")
			if o := s.Get(scene.ConfigMaps, attacker, "web"); o.GetResourceVersion() != forged.GetResourceVersion() || listedInRecord(s) != `["/ConfigMap/elsewhere/web"]` {
				s.T.Errorf("the object is %v, and the record %s", o.Object, listedInRecord(s))
			}
			s.Resize(1)
			s.Remove()
			s.Advance(2 * time.Minute)
			s.WantGone()
		}},
		"one that takes the place of the last child that went is left alone, for the empty record says that it came later": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Advance(time.Minute)
			s.Resize(0)
			s.Settle()
			s.Set("blue", "spec", "color") // its write takes the child out of the record
			s.Advance(time.Minute)
			forgeChild(s, "elsewhere", "web", "keep/settings")
			s.Settle()
			s.Resize(1)
			s.Advance(time.Minute)
			wantValue(s, "elsewhere", "forged")
		}},
		"one that comes while its place is entered is struck out again": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.HoldWatches(scene.ConfigMaps)
			forgeChild(s, attacker, "web", "keep/settings")
			s.Resize(2)
			s.Settle()
			if wantValue(s, attacker, "forged"); listedInRecord(s) != `["/ConfigMap/elsewhere/web"]` {
				s.T.Errorf("the record is %s", listedInRecord(s))
			}
			s.ReleaseWatches(scene.ConfigMaps)
			s.Advance(time.Minute)
			wantValue(s, attacker, "forged")
		}},
		"a child that is made to pass for another one is what it was entered as": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnCreate("keep", func(ctx context.Context, r *dsl.Request) error {
				other := labelled
				other.Name = "other"
				if _, err := r.Children.Apply(ctx, scene.ConfigMapWithValue("elsewhere", "x"), labelled); err != nil {
					return err
				}
				_, err := r.Children.Apply(ctx, scene.ConfigMapWithValue(attacker, "x"), other)
				return err
			})
			foo.OnUpdate("list", scene.NotesChildren(j), dsl.NoOld())
		}, Play: func(s *scene.Stage) {
			begin(s)
			s.Update(scene.ConfigMaps, attacker, "web", func(o *unstructured.Unstructured) {
				notes := o.GetAnnotations()
				notes[scene.ChildAnnotation] = "keep/settings"
				o.SetAnnotations(notes)
				o.SetFinalizers([]string{"example.com/hold"})
			})
			s.Delete(scene.ConfigMaps, attacker, "web")
			s.Forget()
			s.Set("blue", "spec", "color")
			s.Called("keep/other/=attacker/web:labelled,delete,going " + genuine)
			s.Process.Restart()
			s.Forget()
			s.Set("green", "spec", "color")
			s.Called("keep/other/=attacker/web:labelled,delete,going " + genuine)
		}},
		"one in a place that a child has left is none": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Resize(2)
			s.Resize(1)
			s.Forget()
			forgeChild(s, attacker, "web", "keep/settings")
			s.Called()
			s.Set("blue", "spec", "color")
			s.Called("keep update", genuine)
			if listedInRecord(s) != `["/ConfigMap/elsewhere/web"]` {
				s.T.Errorf("the record is %s", listedInRecord(s))
			}
		}},
		"the record of an object that is restored from a copy is void": {Operator: operator, Play: func(s *scene.Stage) {
			begin(s)
			s.Resize(2)
			s.Settle()
			copied := s.Web().GetAnnotations()[scene.RecordAnnotation]
			s.Remove()
			s.Advance(2 * time.Minute)
			s.WantGone()
			s.Create(map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(1)},
				"metadata": map[string]any{"name": "web", "annotations": map[string]any{scene.RecordAnnotation: copied}}})
			s.Forget()
			forgeChild(s, attacker, "web", "keep/settings", labelAsRetained)
			s.Set("blue", "spec", "color")
			s.Called("keep update", genuine)
		}},
	})
	scene.PlayAll(t, all)
}

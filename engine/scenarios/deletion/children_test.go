// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package deletion_test

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// The writes of an owner web and its child.
const (
	owner   = "patch foos default/web"
	made    = "patch configmaps default/web"
	deleted = "delete configmaps default/web"
)

var labelled, orphan = dsl.ChildSpec{Ownership: dsl.Labelled}, dsl.ChildSpec{OnDelete: dsl.OrphanChild}

// reconciles declares a handler that keeps the ConfigMap web.
func reconciles(spec dsl.ChildSpec, options ...dsl.Option) func(*dsl.Resource, *kit.Journal) {
	return func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("child", scene.KeepsConfigMap(spec), options...)
	}
}

// small is a filter for objects of size 1.
func small(s *dsl.Subject) (bool, error) { return scene.SizeOf(s.Object) == 1, nil }

// getChild returns the ConfigMap web.
func getChild(s *scene.Stage) *unstructured.Unstructured {
	s.T.Helper()
	return s.Get(scene.ConfigMaps, "default", "web")
}

// beginWithChild creates web, checks what is written for it, and that nothing is after a restart.
func beginWithChild(s *scene.Stage, wrote ...string) {
	s.T.Helper()
	s.Launch()
	s.Create(scene.Web)
	s.Wrote(wrote...)
	s.Forget()
	s.Process.Restart()
	s.Advance(time.Hour)
	s.Wrote() // once for all
	s.Forget()
}

// wantFreeChild checks that the child is there, and that nothing ties it to its owner.
func wantFreeChild(s *scene.Stage) {
	s.T.Helper()
	switch o := getChild(s); {
	case o == nil:
		s.T.Error("the child is gone")
	case len(o.GetOwnerReferences())+len(o.GetLabels())+len(o.GetAnnotations()) > 0:
		s.T.Errorf("the child is tied still: %v", o.Object["metadata"])
	}
}

// TestADeletionDoesWhatEachChildSpecPromises holds that the engine does at the owner's deletion what a ChildSpec promises, also
// where no handler runs for deletions.
func TestADeletionDoesWhatEachChildSpecPromises(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a labelled child goes": {Operator: reconciles(labelled), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Remove()
			s.WantGone()
			s.Wrote(deleted, owner)
		}},
		"the owner waits until it is gone": {Operator: reconciles(labelled), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
			s.Forget()
			s.Remove()
			s.Advance(time.Hour)
			if s.Web() == nil {
				s.T.Fatal("the owner is gone")
			}
			s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.WantGone()
			s.Wrote(deleted, owner)
		}},
		"a child that is to be left behind is released": {Operator: reconciles(orphan), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Remove()
			s.WantGone()
			wantFreeChild(s)
			s.Wrote(made, owner)
		}},
		"so is one with a name and a label": {Operator: reconciles(dsl.ChildSpec{Handler: "child", Name: "map", Ownership: dsl.Labelled, OnDelete: dsl.OrphanChild}), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Remove()
			s.WantGone()
			wantFreeChild(s)
		}},
		"one that is retained stays with its tie, and the owner has no finalizer": {Operator: reconciles(dsl.ChildSpec{OnDelete: dsl.RetainChild}), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Remove()
			s.WantGone()
			if o := getChild(s); o == nil || o.GetLabels()["op.handwerk.dev/owner"] == "" {
				s.T.Error("the child is gone, or free")
			}
			s.Wrote()
		}},
		"an owned one is left to Kubernetes, and costs nothing": {Operator: reconciles(dsl.ChildSpec{}), Play: func(s *scene.Stage) {
			beginWithChild(s, made)
			s.Remove()
			s.WantGone()
			s.Wrote()
		}},
	})
}

// TestADeletionKeepsThePromisesOfAChildSpecWhateverHappens holds the same where filters, versions, rights or crashes are in
// the way.
func TestADeletionKeepsThePromisesOfAChildSpecWhateverHappens(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"the filter of its handler does not hold any more": {Operator: reconciles(labelled, dsl.When(small)), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Resize(2)
			s.Advance(time.Hour)
			s.Remove()
			s.WantGone()
			if getChild(s) != nil {
				s.T.Error("the child is there still")
			}
		}},
		"the filter does not hold any more, and it is to be left behind": {Operator: reconciles(orphan, dsl.When(small)), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Process.Kill()
			s.Resize(2)
			s.Remove()
			s.Process.Restart()
			s.WantGone()
			wantFreeChild(s)
		}},
		"it is deleted while no process runs": {Operator: reconciles(labelled), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Process.Kill()
			s.Remove()
			s.Process.Restart()
			s.WantGone()
			if getChild(s) != nil {
				s.T.Error("the child is there still")
			}
		}},
		"a crash at any request loses none": {Operator: reconciles(orphan), Play: func(s *scene.Stage) {
			for n := range 4 {
				s.Process = s.Start(s.Operator)
				s.Process.CrashAfter(n)
				s.Create(scene.Web)
				s.Settle()
				s.Process.Restart()
				s.Settle()
				s.Process.CrashAfter(n % 2)
				s.Remove()
				s.Settle()
				s.Process.Restart()
				s.WantGone()
				wantFreeChild(s)
				s.Delete(scene.ConfigMaps, "default", "web")
				s.Process.Kill()
			}
		}},
		"one that is owned from now on": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("child", func(ctx context.Context, r *dsl.Request) error {
				size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
				if size > 1 {
					return scene.KeepsConfigMap(dsl.ChildSpec{})(ctx, r)
				}
				return scene.KeepsConfigMap(orphan)(ctx, r)
			})
		}, Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Resize(2)
			s.Settle()
			if len(s.Web().GetFinalizers()) > 0 {
				s.T.Error("the finalizer is there still")
			}
			s.Wrote(made, owner)
		}},
		"the last labelled one was deleted": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnCreate("child", scene.KeepsConfigMap(labelled))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			s.Delete(scene.ConfigMaps, "default", "web")
			s.Advance(time.Minute)
			if slices.Contains(s.Web().GetFinalizers(), scene.Finalizer) {
				s.T.Error("the finalizer is there still")
			}
		}},
		"what a handler makes when the object is deleted stays": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnDelete("backup", scene.KeepsConfigMap(labelled))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.WantGone()
			if getChild(s) == nil {
				s.T.Error("the child is gone")
			}
		}},
		"an object that leaves the selector": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector = "tier=gold"
			reconciles(labelled)(foo, j)
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}}`)
			s.Settle()
			s.Forget()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			s.Advance(10 * time.Minute)
			if getChild(s) != nil || slices.Contains(s.Web().GetFinalizers(), scene.Finalizer) {
				s.T.Error("the child is there still, or the finalizer")
			}
			s.Wrote(deleted, owner)
		}},
		"the right to delete it is missing": {Operator: reconciles(labelled), Play: func(s *scene.Stage) {
			beginWithChild(s, owner, made)
			s.Forbid("delete", "configmaps")
			s.Remove()
			s.Advance(time.Hour)
			if s.Web() == nil {
				s.T.Fatal("the owner is gone")
			}
			s.Allow("delete", "configmaps")
			s.Advance(10 * time.Minute)
			s.WantGone()
			if getChild(s) != nil {
				s.T.Error("the child is there still")
			}
		}},
		"children of before their owner was held": {Operator: reconciles(labelled), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			s.Process.Kill()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Forget()
			s.Process.Restart()
			s.Settle()
			s.Wrote(owner)
			s.Remove()
			s.WantGone()
			if getChild(s) != nil {
				s.T.Error("the child is there still")
			}
		}},
	})
}

// TestTheRecordDecidesAtADeletion holds that children go as they are kept when their owner is deleted, whichever handlers the
// version has that runs then.
func TestTheRecordDecidesAtADeletion(t *testing.T) {
	const keep = `{id: app, apply: {c: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}}}`
	tests := map[string]struct {
		options []string
		next    func(v *scene.Versions)
		want    []string
	}{
		"its handler has another template":           {nil, func(v *scene.Versions) { v.Next(keep) }, nil},
		"its handler is there no more":               {nil, func(v *scene.Versions) { v.Next(scene.LabelsSeen) }, nil},
		"another handler makes children of its kind": {nil, func(v *scene.Versions) { v.Next(scene.AppliesChild("other", "Deployment", "x")) }, nil},
		"its handler does not see the object": {nil, func(v *scene.Versions) {
			v.Next(`{id: app, labels: {a: b}, apply: {b: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}, ownership: labelled}}}`)
		}, nil},
		"a template is called otherwise": {nil, func(v *scene.Versions) {
			v.Next(`{id: app, apply: {d: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}}}}`)
		}, nil},
		"its kind is not declared, and there is no register": {nil, func(v *scene.Versions) { v.NextUnregistered(scene.LabelsSeen) }, nil},
		"it is to be left behind":                            {[]string{"onDelete: orphan"}, func(v *scene.Versions) { v.Next(keep) }, []string{"Deployment b of "}},
		"it is retained":                                     {[]string{"onDelete: retain"}, func(v *scene.Versions) { v.Next(keep) }, []string{"Deployment b of app/b;retain"}},
		"it is held by a finalizer": {nil, func(v *scene.Versions) {
			hold := func(finalizers ...string) {
				v.Update(scene.Deployments, "default", "b", func(o *unstructured.Unstructured) { o.SetFinalizers(finalizers) })
			}
			hold("example.com/hold")
			v.Next(keep)
			v.Advance(time.Hour)
			if v.Web() == nil {
				v.T.Error("the owner is gone before its child")
			}
			hold()
		}, nil},
		"the request fails at first": {nil, func(v *scene.Versions) {
			v.FailNext("delete", "deployments.apps", scene.ErrAgain)
			v.Next(keep)
			v.Advance(time.Minute)
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayVersions(t, func(v *scene.Versions) {
				options := test.options
				if options == nil {
					options = []string{"ownership: labelled"}
				}
				v.Next(scene.AppliesChild("app", "Deployment", "b", options...))
				if err := v.Process.Stop(); err != nil {
					t.Error(err)
				}
				v.Process = nil
				v.Remove()
				test.next(v)
				v.Advance(10 * time.Second) // the search for kinds of the register may end after the reconcile, which looks again then
				if v.Web() != nil {
					t.Error("the owner is there still")
				}
				var got []string
				for _, o := range v.List(scene.Deployments, "default") {
					got = append(got, "Deployment "+o.GetName()+" of "+o.GetAnnotations()["op.handwerk.dev/child"])
					if metav1.GetControllerOf(o) != nil {
						t.Errorf("%s has an owner", o.GetName())
					}
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("children %q, want %q", got, test.want)
				}
			})
		})
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// keepsMap makes the ConfigMap web.
func keepsMap(spec dsl.ChildSpec) dsl.Func {
	return func(ctx ctx, r *dsl.Request) error {
		_, err := r.Children.Apply(ctx, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "web", "namespace": "default"},
		}, spec)
		return err
	}
}

// TestChildrenOfGoHandlersAtTheirOwnersDeletion holds that the engine does at the owner's deletion what a ChildSpec promises, also
// where no handler runs for deletions.
func TestChildrenOfGoHandlersAtTheirOwnersDeletion(t *testing.T) {
	const (
		owner, made, deleted = "patch foos default/web", "patch configmaps default/web", "delete configmaps default/web"
	)
	labelled, orphan := dsl.ChildSpec{Ownership: dsl.Labelled}, dsl.ChildSpec{OnDelete: dsl.OrphanChild}
	reconciles := func(spec dsl.ChildSpec, options ...dsl.Option) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("child", keepsMap(spec), options...)
		}
	}
	small := dsl.When(func(s *dsl.Subject) (bool, error) {
		size, _, _ := unstructured.NestedInt64(s.Object.Object, "spec", "size")
		return size == 1, nil
	})
	child := func(s *stage) *unstructured.Unstructured { s.t.Helper(); return s.Get(configMaps, "default", "web") }
	begins := func(s *stage, wrote ...string) {
		s.t.Helper()
		s.Launch()
		s.Create(web)
		s.Wrote(wrote...)
		s.Forget()
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Wrote() // once for all
		s.Forget()
	}
	gone := func(s *stage) {
		s.t.Helper()
		s.Settle()
		if s.web() != nil {
			s.t.Error("the owner is there still")
		}
	}
	free := func(s *stage) {
		s.t.Helper()
		switch o := child(s); {
		case o == nil:
			s.t.Error("the child is gone")
		case len(o.GetOwnerReferences())+len(o.GetLabels())+len(o.GetAnnotations()) > 0:
			s.t.Errorf("the child is tied still: %v", o.Object["metadata"])
		}
	}
	scenarios(t, map[string]scenario{
		"a labelled child goes": {reconciles(labelled), func(s *stage) {
			begins(s, owner, made)
			s.remove()
			gone(s)
			s.Wrote(deleted, owner)
		}},
		"the owner waits until it is gone": {reconciles(labelled), func(s *stage) {
			begins(s, owner, made)
			s.Update(configMaps, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/hold"}) })
			s.Forget()
			s.remove()
			s.Advance(time.Hour)
			if s.web() == nil {
				s.t.Fatal("the owner is gone")
			}
			s.Update(configMaps, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			gone(s)
			s.Wrote(deleted, owner)
		}},
		"a child that is to be left behind is released": {reconciles(orphan), func(s *stage) {
			begins(s, owner, made)
			s.remove()
			gone(s)
			free(s)
			s.Wrote(made, owner)
		}},
		"so is one with a name and a label": {reconciles(dsl.ChildSpec{Handler: "child", Name: "map", Ownership: dsl.Labelled, OnDelete: dsl.OrphanChild}), func(s *stage) {
			begins(s, owner, made)
			s.remove()
			gone(s)
			free(s)
		}},
		"one that is retained stays with its tie, and the owner has no finalizer": {reconciles(dsl.ChildSpec{OnDelete: dsl.RetainChild}), func(s *stage) {
			begins(s, owner, made)
			s.remove()
			gone(s)
			if o := child(s); o == nil || o.GetLabels()["op.handwerk.dev/owner"] == "" {
				s.t.Error("the child is gone, or free")
			}
			s.Wrote()
		}},
		"an owned one is left to Kubernetes, and costs nothing": {reconciles(dsl.ChildSpec{}), func(s *stage) {
			begins(s, made)
			s.remove()
			gone(s)
			s.Wrote()
		}},
		"the filter of its handler does not hold any more": {reconciles(labelled, small), func(s *stage) {
			begins(s, owner, made)
			s.size(2)
			s.Advance(time.Hour)
			s.remove()
			gone(s)
			if child(s) != nil {
				s.t.Error("the child is there still")
			}
		}},
		"the filter does not hold any more, and it is to be left behind": {reconciles(orphan, small), func(s *stage) {
			begins(s, owner, made)
			s.Process.Kill()
			s.size(2)
			s.remove()
			s.Process.Restart()
			gone(s)
			free(s)
		}},
		"it is deleted while no process runs": {reconciles(labelled), func(s *stage) {
			begins(s, owner, made)
			s.Process.Kill()
			s.remove()
			s.Process.Restart()
			gone(s)
			if child(s) != nil {
				s.t.Error("the child is there still")
			}
		}},
		"a crash at any request loses none": {reconciles(orphan), func(s *stage) {
			for n := range 4 {
				s.Process = s.Start(s.Operator)
				s.Process.CrashAfter(n)
				s.Create(web)
				s.Settle()
				s.Process.Restart()
				s.Settle()
				s.Process.CrashAfter(n % 2)
				s.remove()
				s.Settle()
				s.Process.Restart()
				gone(s)
				free(s)
				s.Delete(configMaps, "default", "web")
				s.Process.Kill()
			}
		}},
		"one that is owned from now on": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("child", func(ctx ctx, r *dsl.Request) error {
				size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
				if size > 1 {
					return keepsMap(dsl.ChildSpec{})(ctx, r)
				}
				return keepsMap(orphan)(ctx, r)
			})
		}, func(s *stage) {
			begins(s, owner, made)
			s.size(2)
			s.Settle()
			if len(s.web().GetFinalizers()) > 0 {
				s.t.Error("the finalizer is there still")
			}
			s.Wrote(made, owner)
		}},
		"the last labelled one was deleted": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnCreate("child", keepsMap(labelled))
		}, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Settle()
			s.Delete(configMaps, "default", "web")
			s.Advance(time.Minute)
			if slices.Contains(s.web().GetFinalizers(), finalizer) {
				s.t.Error("the finalizer is there still")
			}
		}},
		"what a handler makes when the object is deleted stays": {func(foo *dsl.Resource, _ *journal) {
			foo.Owns(configMaps)
			foo.OnDelete("backup", keepsMap(labelled))
		}, func(s *stage) {
			s.begin()
			s.remove()
			gone(s)
			if child(s) == nil {
				s.t.Error("the child is gone")
			}
		}},
		"an object that leaves the selector": {func(foo *dsl.Resource, j *journal) {
			foo.LabelSelector = "tier=gold"
			reconciles(labelled)(foo, j)
		}, func(s *stage) {
			s.Launch()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}}`)
			s.Settle()
			s.Forget()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			s.Advance(10 * time.Minute)
			if child(s) != nil || slices.Contains(s.web().GetFinalizers(), finalizer) {
				s.t.Error("the child is there still, or the finalizer")
			}
			s.Wrote(deleted, owner)
		}},
		"the right to delete it is missing": {reconciles(labelled), func(s *stage) {
			begins(s, owner, made)
			s.Forbid("delete", "configmaps")
			s.remove()
			s.Advance(time.Hour)
			if s.web() == nil {
				s.t.Fatal("the owner is gone")
			}
			s.Allow("delete", "configmaps")
			s.Advance(10 * time.Minute)
			gone(s)
			if child(s) != nil {
				s.t.Error("the child is there still")
			}
		}},
		"children of before their owner was held": {reconciles(labelled), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Settle()
			s.Process.Kill()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Forget()
			s.Process.Restart()
			s.Settle()
			s.Wrote(owner)
			s.remove()
			gone(s)
			if child(s) != nil {
				s.t.Error("the child is there still")
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
		next    func(v *versions)
		want    []string
	}{
		"its handler has another template":           {nil, func(v *versions) { v.version(keep) }, nil},
		"its handler is there no more":               {nil, func(v *versions) { v.version(seesIt) }, nil},
		"another handler makes children of its kind": {nil, func(v *versions) { v.version(childOf("other", "Deployment", "x")) }, nil},
		"its handler does not see the object": {nil, func(v *versions) {
			v.version(`{id: app, labels: {a: b}, apply: {b: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}, ownership: labelled}}}`)
		}, nil},
		"a template is called otherwise": {nil, func(v *versions) {
			v.version(`{id: app, apply: {d: {template: {apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}}}}`)
		}, nil},
		"its kind is not declared, and there is no register": {nil, func(v *versions) { v.unregistered(seesIt) }, nil},
		"it is to be left behind":                            {[]string{"onDelete: orphan"}, func(v *versions) { v.version(keep) }, []string{"Deployment b of "}},
		"it is retained":                                     {[]string{"onDelete: retain"}, func(v *versions) { v.version(keep) }, []string{"Deployment b of app/b;retain"}},
		"it is held by a finalizer": {nil, func(v *versions) {
			hold := func(finalizers ...string) {
				v.Update(deployments, "default", "b", func(o *unstructured.Unstructured) { o.SetFinalizers(finalizers) })
			}
			hold("example.com/hold")
			v.version(keep)
			v.Advance(time.Hour)
			if v.web() == nil {
				v.t.Error("the owner is gone before its child")
			}
			hold()
		}, nil},
		"the request fails at first": {nil, func(v *versions) {
			v.FailNext("delete", "deployments.apps", errAgain)
			v.version(keep)
			v.Advance(time.Minute)
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			follow(t, func(v *versions) {
				options := test.options
				if options == nil {
					options = []string{"ownership: labelled"}
				}
				v.version(childOf("app", "Deployment", "b", options...))
				if err := v.Process.Stop(); err != nil {
					t.Error(err)
				}
				v.Process = nil
				v.remove()
				test.next(v)
				v.Settle()
				if v.web() != nil {
					t.Error("the owner is there still")
				}
				var got []string
				for _, o := range v.List(deployments, "default") {
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

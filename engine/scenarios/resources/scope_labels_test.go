// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// space makes a namespace, or gives one that is there other labels. Without a tenant it has none.
func space(s *scene.Stage, name, tenant string) {
	s.T.Helper()
	change := func(o *unstructured.Unstructured) {
		o.SetLabels(nil)
		if tenant != "" {
			o.SetLabels(map[string]string{"tenant": tenant})
		}
	}
	if s.Get(namespaces, "", name) == nil {
		s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	}
	s.Update(namespaces, "", name, change)
}

// inSpace is a Foo of the name web.
func inSpace(namespace string) string {
	return `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, namespace: ` + namespace + `}, spec: {size: 1}}`
}

// held declares a handler for all, and one for the end, which has a finalizer.
func held(foo *dsl.Resource, j *kit.Journal) {
	where := func(id string) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			j.Add(id + " " + r.Object.GetNamespace() + " " + string(r.Cause))
			return nil
		}
	}
	foo.OnReconcile("sync", where("sync"))
	foo.OnDelete("left", where("left"))
}

// labelled is a scenario of an operator that works in the namespaces with the label tenant. Namespace a has the label.
func labelled(operator func(*dsl.Resource, *kit.Journal), play func(s *scene.Stage)) scene.Scenario {
	return scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
		s.Operator.Scope.NamespaceSelector = "tenant"
		space(s, "a", "x")
		play(s)
	}}
}

// wantFinalizer checks whether the Foo of a namespace has the operator's finalizer.
func wantFinalizer(s *scene.Stage, namespace string, want bool) {
	s.T.Helper()
	s.Settle()
	if got := len(s.Get(scene.Foos, namespace, "web").GetFinalizers()) > 0; got != want {
		s.T.Errorf("the object in namespace %s has a finalizer: %v", namespace, got)
	}
}

// one takes the calls and checks that they are one, which begins with the words.
func one(s *scene.Stage, begins string) {
	s.T.Helper()
	s.Settle()
	if got := s.Take(); len(got) != 1 || !strings.HasPrefix(got[0], begins) {
		s.T.Errorf("calls %v, want one %s…", got, begins)
	}
}

// TestLabelsOfNamespacesDecideWhichObjectsAreHandled holds that an operator with a selector of namespaces works in those that
// have the labels, at any time.
func TestLabelsOfNamespacesDecideWhichObjectsAreHandled(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"labels come, go, and come again": labelled(held, func(s *scene.Stage) {
			space(s, "b", "")
			s.Create(inSpace("a"))
			s.Create(inSpace("b"))
			s.Launch()
			s.Called("sync a resume")
			wantFinalizer(s, "b", false)
			space(s, "b", "blue")
			one(s, "sync b ")
			wantFinalizer(s, "b", true)
			space(s, "b", "red") // still has it
			s.Called()
			space(s, "b", "")
			s.Called("left b delete")
			wantFinalizer(s, "b", false)
			if got := s.Get(scene.Foos, "b", "web").GetAnnotations(); len(got) > 0 {
				s.T.Errorf("what is left of the operator: %v", got)
			}
			s.Update(scene.Foos, "b", "web", scene.SetField(int64(7), "spec", "size"))
			s.Advance(time.Hour)
			s.Called()
			wantFinalizer(s, "a", true)
			space(s, "b", "blue")
			one(s, "sync b ")
			wantFinalizer(s, "b", true)
			scene.WantWell(s)
		}),
		"a namespace that comes with labels, and its end": labelled(held, func(s *scene.Stage) {
			s.Launch()
			s.Create(`{apiVersion: v1, kind: Namespace, metadata: {name: b, labels: {tenant: blue}}}`)
			s.Create(inSpace("b"))
			one(s, "sync b ")
			s.Delete(scene.Foos, "b", "web")
			s.Called("left b delete")
			s.Delete(namespaces, "", "b")
			s.Advance(time.Minute)
			s.Called()
			scene.WantWell(s)
		}),
		"names and labels must both match": labelled(held, func(s *scene.Stage) {
			s.Operator.Scope.Namespaces = []string{"team-*", "b"}
			s.Operator.Scope.NamespaceSelector = "tenant in (x,blue),!paused"
			for name, tenant := range map[string]string{"team-a": "x", "team-b": "red", "b": "blue"} {
				space(s, name, tenant)
				s.Create(inSpace(name))
			}
			s.Create(inSpace("a"))
			s.Launch()
			s.CalledInAnyOrder("sync team-a resume", "sync b resume")
		}),
		"objects without a namespace are in every scope": labelled(held, func(s *scene.Stage) {
			s.Operator.Resource("nodes.v1", func(n *dsl.Resource) { n.OnReconcile("node", s.Note("node")) })
			s.Launch()
			s.Create(`{apiVersion: v1, kind: Node, metadata: {name: one}}`)
			s.Called("node create")
		}),
		"labels that go and come at once leave the object handled": labelled(held, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Launch()
			s.Forget()
			s.HoldWatches(namespaces)
			for range 5 {
				space(s, "a", "")
				space(s, "a", "blue")
			}
			s.ReleaseWatches(namespaces)
			s.Advance(time.Minute)
			s.Forget() // it may have left for a moment
			wantFinalizer(s, "a", true)
			s.Update(scene.Foos, "a", "web", scene.SetField(int64(7), "spec", "size"))
			s.Called("sync a update")
			scene.WantWell(s)
		}),
		"labels that go while the watch of namespaces is away": labelled(held, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Forbid("get", namespaces) // none is needed for it
			s.Launch()
			s.Forget()
			s.HoldWatches(namespaces)
			space(s, "a", "")
			s.Advance(time.Minute)
			s.Called()
			s.ExpireWatches(namespaces)
			s.ReleaseWatches(namespaces)
			s.Advance(time.Minute)
			s.Called("left a delete")
			wantFinalizer(s, "a", false)
			scene.WantWell(s)
		}),
		"labels that come while no process runs": labelled(held, func(s *scene.Stage) {
			space(s, "b", "")
			s.Create(inSpace("b"))
			s.Launch()
			s.Called()
			scene.Stop(s)
			space(s, "b", "blue")
			s.Launch()
			one(s, "sync b ")
		}),
		"labels that go while no process runs leave what the operator has put on, until they come back": labelled(held, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Launch()
			s.Forget()
			scene.Stop(s)
			space(s, "a", "")
			s.Launch()
			s.Advance(time.Hour)
			s.Called()
			s.Wrote()
			wantFinalizer(s, "a", true)
			s.Delete(scene.Foos, "a", "web")
			s.Advance(time.Hour)
			s.Called()
			space(s, "a", "x")
			s.Called("left a delete")
			if s.Get(scene.Foos, "a", "web") != nil {
				s.T.Error("the object is held")
			}
		}),
		"no right to list namespaces": labelled(held, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Forbid("list", namespaces)
			s.Launch()
			s.Advance(10 * time.Second)
			s.Called()
			scene.WantUnwell(s, "resource/"+scene.Foos, "namespaces are forbidden: list (", "operator rbac prints them)")
			s.Allow("list", namespaces)
			s.Advance(time.Minute)
			s.Called("sync a resume")
			scene.WantWell(s)
		}),
		"a right to list namespaces that is taken away changes nothing": labelled(held, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Launch()
			s.Forget()
			s.Forbid("*", namespaces)
			s.ExpireWatches(namespaces)
			space(s, "a", "")
			s.Advance(time.Hour)
			s.Called()
			s.Allow("*", namespaces)
			s.Advance(time.Minute)
			s.Called("left a delete")
		}),
		"rights that go with the label keep no object for long": labelled(held, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Launch()
			s.Forget()
			s.Forbid("*", scene.Foos, "a")
			space(s, "a", "")
			s.Settle()
			s.Called("left a delete")
			wantFinalizer(s, "a", true)
			s.Allow("*", scene.Foos, "a")
			s.Advance(2 * time.Minute)
			wantFinalizer(s, "a", false)
			s.Called()
		}),
		"a server that is restored": labelled(held, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Launch()
			s.Forget()
			restore := s.Backup()
			space(s, "a", "")
			s.Called("left a delete")
			restore()
			s.CutWatches(namespaces, scene.Foos)
			s.Advance(time.Minute)
			one(s, "sync a ")
			wantFinalizer(s, "a", true)
		}),
	})
}

// TestWhatGoesOnInANamespaceEndsWithItsLabels holds what becomes of daemons, timers, children, indexes and related objects when a
// namespace leaves the scope.
func TestWhatGoesOnInANamespaceEndsWithItsLabels(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"daemons and timers": labelled(func(foo *dsl.Resource, j *kit.Journal) {
			foo.Daemon("watch", func(ctx context.Context, _ *dsl.DaemonRequest) error {
				j.Add("begins")
				<-ctx.Done()
				j.Add("ends")
				return nil
			})
			foo.Every(time.Minute, "tick", j.Note("tick"))
		}, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Launch()
			s.Advance(90 * time.Second)
			s.Settle()
			if got := s.Take(); !slices.Contains(got, "begins") || !slices.Contains(got, "tick timer") {
				s.T.Errorf("calls %v", got)
			}
			space(s, "a", "")
			s.Called("ends")
			s.Advance(time.Hour)
			s.Called()
			wantFinalizer(s, "a", false)
			space(s, "a", "x")
			s.Settle()
			if got := s.Take(); !slices.Contains(got, "begins") {
				s.T.Errorf("calls %v", got)
			}
		}),
		"children with an owner reference stay as they are": labelled(scene.OwnsDeployment, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			s.Launch()
			s.Settle()
			before := s.Get(scene.Deployments, "a", "web")
			s.Forget()
			space(s, "a", "")
			s.Advance(time.Hour)
			if after := s.Get(scene.Deployments, "a", "web"); after == nil || after.GetResourceVersion() != before.GetResourceVersion() {
				s.T.Errorf("the child was %v, and is %v", before, after)
			}
			s.Delete(scene.Deployments, "a", "web")
			s.Advance(time.Hour)
			if s.Get(scene.Deployments, "a", "web") != nil {
				s.T.Error("the child is put back")
			}
			if events := s.Events(); len(events) > 0 {
				s.T.Errorf("Events %v", events)
			}
			space(s, "a", "x")
			s.Advance(time.Minute)
			if s.Get(scene.Deployments, "a", "web") == nil {
				s.T.Error("the child is not put back when the namespace is in the scope again")
			}
		}),
		"labelled children of its owners go, wherever they are": labelled(keepsFar("b", "c"), func(s *scene.Stage) {
			space(s, "b", "x")
			space(s, "c", "x")
			s.Create(inSpace("a"))
			s.Launch()
			s.Settle()
			wantFar(s, true, "b", "c")
			space(s, "a", "")
			space(s, "c", "")
			s.Advance(time.Hour)
			wantFar(s, false, "b", "c")
			wantFinalizer(s, "a", false)
		}),
		"a child in a namespace that leaves stays until its owner goes": labelled(keepsFar("b"), func(s *scene.Stage) {
			space(s, "b", "x")
			s.Create(inSpace("a"))
			s.Launch()
			s.Settle()
			space(s, "b", "")
			s.Advance(time.Minute)
			wantFar(s, true, "b")
			if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "the namespace is not one that the operator watches") {
				s.T.Errorf("Events %v", events)
			}
			s.Delete(scene.Foos, "a", "web")
			s.Advance(time.Minute)
			wantFar(s, false, "b")
			if s.Get(scene.Foos, "a", "web") != nil {
				s.T.Error("the owner is held")
			}
		}),
		"indexes, and those who have read them": labelled(scene.LooksUp(dsl.Reconcile), func(s *scene.Stage) {
			space(s, "default", "x")
			s.Create(settingsMap("a/a", "", "x", "1"))
			s.LaunchWithIndex()
			s.Create(scene.FooWithRef("web", "x"))
			s.Called("web create: 1")
			space(s, "a", "")
			s.Advance(time.Minute)
			wantLastCall(s, "web index:")
			space(s, "a", "x")
			s.Advance(time.Minute)
			wantLastCall(s, "web index: 1")
		}),
		"related objects, and those who look at them": labelled(
			scene.NotesRelated(dsl.Relation{Name: "maps", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Select: func(*dsl.Subject) (dsl.Selection, error) {
				return dsl.Selection{Namespace: "a"}, nil
			}}, dsl.Reconcile), func(s *scene.Stage) {
				space(s, "default", "x")
				s.Create(settingsMap("a/one", "", "x", "1"))
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				with := s.Take()
				space(s, "a", "")
				s.Advance(time.Minute)
				without := s.Take()
				if len(with) != 1 || !strings.Contains(with[0], "a/one") || len(without) != 1 || strings.Contains(without[0], "a/one") {
					s.T.Errorf("calls %v with the namespace, and %v without it", with, without)
				}
			}),
	})
}

// keepsFar declares a handler that keeps a labelled ConfigMap in each of these namespaces.
func keepsFar(namespaces ...string) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, _ *kit.Journal) {
		foo.Owns(scene.ConfigMaps)
		foo.OnReconcile("far", func(ctx context.Context, r *dsl.Request) error {
			for _, ns := range namespaces {
				if _, err := r.Children.Apply(ctx, scene.ConfigMapIn(ns, "far"), dsl.ChildSpec{Ownership: dsl.Labelled}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// wantFar checks whether there are those ConfigMaps.
func wantFar(s *scene.Stage, want bool, namespaces ...string) {
	s.T.Helper()
	for _, ns := range namespaces {
		if there := s.Get(scene.ConfigMaps, ns, "far") != nil; there != want {
			s.T.Errorf("there is a child in namespace %s: %v", ns, there)
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/transport"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// handler handles the events of a feed.
type handler func(watch.Event)

func (h handler) OnEvent(ev watch.Event) { h(ev) }

func (handler) Grant() {}

// rig is a feed of foos, which is not run, and the server's foos in team-a.
type rig struct {
	*Feed
	t    *testing.T
	foos dynamic.ResourceInterface
}

// rigged returns a feed that watches these foos in team-a.
func rigged(t *testing.T, s Settings, names ...string) *rig {
	t.Helper()
	served := catalog.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}, Kind: "Foo", Namespaced: true}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{served.GVR: "FooList"})
	set := watch.New(watch.Settings{Dynamic: client})
	t.Cleanup(set.Close)
	s.Name = dsl.ResourceName{Resource: "foos", Group: "example.com"}
	in := Cluster{Watches: set, Scope: NewScope(ScopeSettings{Patterns: []string{"team-a"}}), Outages: transport.NewOutages(logr.Discard())}
	r := &rig{Feed: New(in, s), t: t, foos: client.Resource(served.GVR).Namespace("team-a")}
	r.found(served, false)
	for _, name := range names {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo"}}
		o.SetName(name)
		o.SetUID(types.UID(name))
		if _, err := r.foos.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.informers.open(t.Context(), []string{"team-a"}, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) delete(name string) {
	r.t.Helper()
	if err := r.foos.Delete(r.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// TestNoDeletionIsLostWhenAnInformerIsClosed closes the informer of a namespace while the deletions of
// its objects wait to be told.
func TestNoDeletionIsLostWhenAnInformerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, told := make(chan struct{}), map[types.UID]int{}
		all := []string{"a", "b", "c", "d", "e"}
		f := rigged(t, Settings{Handler: handler(func(ev watch.Event) {
			if ev.Kind == watch.Deleted {
				<-gate
				told[ev.UID]++
			}
		})}, all...)
		synctest.Wait()
		for _, name := range all {
			f.delete(name)
		}
		synctest.Wait() // the first one is being told, the others wait
		closed := make(chan error)
		go func() { closed <- f.informers.open(t.Context(), nil, nil) }()
		synctest.Wait()
		close(gate)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			if n := told[types.UID(name)]; n != 1 {
				t.Errorf("the deletion of %s was told %d times", name, n)
			}
		}
	})
}

// TestTelling holds that a deletion is being told from the moment when the cache does not have the object any
// more until whoever is told has returned.
func TestTelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, key := make(chan struct{}), cache.ObjectName{Namespace: "team-a", Name: "a"}
		f := rigged(t, Settings{Handler: handler(func(ev watch.Event) {
			if ev.Kind == watch.Deleted {
				<-gate
			}
		})}, "a")
		synctest.Wait()
		f.delete("a")
		synctest.Wait()
		if _, found := f.Get(key); found || !f.Telling(key) {
			t.Errorf("the cache has it: %v; its deletion is being told: %v", found, f.Telling(key))
		}
		close(gate)
		synctest.Wait()
		if f.Telling(key) {
			t.Error("the deletion that was told is said to be told still")
		}
	})
}

// steps is a function that is called when all is listed.
type steps func(well bool)

func (s steps) Listed(_ context.Context, well bool) bool {
	s(well)
	return false
}

func (steps) Absent(context.Context) {}

// TestListedIsToldOfAll holds that a listing counts when everything of it was told: the cache has it before.
func TestListedIsToldOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, told := make(chan struct{}), []string{}
		f := rigged(t, Settings{
			Handler: handler(func(ev watch.Event) {
				<-gate
				told = append(told, ev.Key.Name)
			}),
			Steps: steps(func(well bool) { told = append(told, fmt.Sprint("all, well: ", well)) }),
		}, "a", "b")
		synctest.Wait() // the cache has them, and the first one is being told
		if n := len(f.Objects("team-a")); n != 2 {
			t.Errorf("the cache has %d objects", n)
		}
		judged := make(chan bool)
		go func() { judged <- f.runner.judge(t.Context(), nil) }()
		synctest.Wait()
		close(gate)
		if again := <-judged; again {
			t.Error("it looks again")
		}
		if len(told) == 3 {
			slices.Sort(told[:2]) // a listing has no order
		}
		if diff := cmp.Diff([]string{"a", "b", "all, well: true"}, told); diff != "" {
			t.Errorf("what was told (-want +got):\n%s", diff)
		}
	})
}

// TestFollow holds what an informer tells that takes the place of another one.
func TestFollow(t *testing.T) {
	object := func(uid, version string) *cached.Object {
		return held(t, map[string]any{"name": uid, "uid": uid, "resourceVersion": version})
	}
	var told []string
	on := handler(func(ev watch.Event) {
		told = append(told, fmt.Sprintf("%s %s initial %v unseen %v", ev.Key.Name, ev.Kind, ev.Initial, ev.Unseen))
	})
	before, now := newLedger(on, false), newLedger(on, true)
	for _, o := range []*cached.Object{object("same", "1"), object("changed", "1"), object("gone", "1")} {
		before.OnEvent(watch.Event{Key: cache.MetaObjectToName(o), UID: o.GetUID(), Object: o})
	}
	told = nil
	for _, o := range []*cached.Object{object("same", "1"), object("changed", "2"), object("new", "2")} {
		now.OnEvent(watch.Event{Key: cache.MetaObjectToName(o), UID: o.GetUID(), Object: o})
	}
	if len(told) > 0 {
		t.Errorf("a silent one tells %q", told)
	}
	now.follow(before)
	last := told[len(told)-1]
	now.OnEvent(watch.Event{Kind: watch.Deleted, Key: cache.ObjectName{Name: "new"}, UID: "new"})
	slices.Sort(told)
	want := []string{
		"changed updated initial false unseen false", "gone deleted initial false unseen true",
		"new added initial false unseen false", "new deleted initial false unseen false", "same added initial true unseen false",
	}
	if diff := cmp.Diff(want, told); diff != "" || last != want[1] {
		t.Errorf("last %q; what was told (-want +got):\n%s", last, diff)
	}
}

// held returns an object as a cache holds it.
func held(t *testing.T, metadata map[string]any) *cached.Object {
	t.Helper()
	transform, err := cached.NewTransform(cached.Form{}, schema.GroupVersion{Group: "example.com", Version: "v1"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	o, err := transform(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": metadata}})
	if err != nil {
		t.Fatal(err)
	}
	return o.(*cached.Object)
}

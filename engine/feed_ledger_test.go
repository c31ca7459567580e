// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/access"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/preflight"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// TestNoDeletionIsLostWhenAnInformerIsClosed closes the informer of a namespace while the deletions of
// its objects wait to be told.
func TestNoDeletionIsLostWhenAnInformerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const number = 5
		gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gvr: "FooList"})
		foos := client.Resource(gvr).Namespace("team-a")
		for i := range number {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo"}}
			o.SetName(fmt.Sprint("foo-", i))
			o.SetUID(types.UID(o.GetName()))
			if _, err := foos.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		gate, told := make(chan struct{}), map[types.UID]int{}
		set := watch.New(watch.Settings{Dynamic: client})
		defer set.Close()
		f := &feed{
			name: dsl.ResourceName{Resource: "foos", Group: "example.com"}, watches: set, log: logr.Discard(),
			served: catalog.Resource{GVR: gvr, Kind: "Foo", Namespaced: true}, known: true,
			handles: map[string]*watch.Handle{}, ledgers: map[string]*ledger{},
			on: func(ev watch.Event) {
				if ev.Kind == watch.Deleted {
					<-gate
					told[ev.UID]++
				}
			},
		}
		if err := f.open(t.Context(), []string{"team-a"}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for i := range number {
			if err := foos.Delete(t.Context(), fmt.Sprint("foo-", i), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the first one is being told, the others wait
		closed := make(chan error)
		go func() { closed <- f.open(t.Context(), nil, nil) }()
		synctest.Wait()
		close(gate)
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		for i := range number {
			if n := told[types.UID(fmt.Sprint("foo-", i))]; n != 1 {
				t.Errorf("the deletion of foo-%d was told %d times", i, n)
			}
		}
	})
}

// TestAChildIsGoneWhenItsOwnerWasTold holds that a place is not taken off an owner's record between the
// moment when the cache loses the child and the one when that is told: the owner is found by its record.
func TestAChildIsGoneWhenItsOwnerWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{gvr: "ConfigMapList"})
		maps := client.Resource(gvr).Namespace("far")
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetName("child")
		o.SetUID("1")
		if _, err := maps.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		gate := make(chan struct{})
		set := watch.New(watch.Settings{Dynamic: client})
		defer set.Close()
		f := &feed{
			name: dsl.ResourceName{Resource: "configmaps"}, watches: set, log: logr.Discard(),
			served: catalog.Resource{GVR: gvr, Kind: "ConfigMap", Namespaced: true}, known: true,
			handles: map[string]*watch.Handle{}, ledgers: map[string]*ledger{},
			on: func(ev watch.Event) {
				if ev.Kind == watch.Deleted {
					<-gate
				}
			},
		}
		if err := f.open(t.Context(), []string{"far"}, nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := maps.Delete(t.Context(), "child", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the cache has lost it, and its owner is being told
		r, place := &resource{children: []*feed{f}}, placeIn(f, cache.ObjectName{Namespace: "far", Name: "child"})
		if _, known := r.claimed(child.Owner{}, place); known {
			t.Error("the child counts as gone before its owner was told")
		}
		close(gate)
		synctest.Wait()
		if there, known := r.claimed(child.Owner{}, place); there || !known {
			t.Error("the child does not count as gone after its owner was told")
		}
	})
}

// TestTheScopeIsKnownWhenAllNamespacesWereSeen holds that a synced informer is not enough: its callback
// may have to run for most of them yet.
func TestTheScopeIsKnownWhenAllNamespacesWereSeen(t *testing.T) {
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	s := newScope([]string{"team-*"})
	s.changed = func() {}
	e := &Engine{scope: s, crds: &feed{}, access: &access.Monitor{}, recheck: &preflight.Recheck{}}
	e.namespaces = &feed{served: catalog.Resource{GVR: namespaces}, known: true, wake: make(chan struct{}, 1)}
	e.watchChanged(watch.Source{GVR: namespaces}, watch.State{Synced: true})
	if names, known := s.names(true); known {
		t.Errorf("before any was seen the namespaces are said to be %v", names)
	}
	if len(e.namespaces.wake) != 1 {
		t.Error("the feed is not told to look")
	}
}

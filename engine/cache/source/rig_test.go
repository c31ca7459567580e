// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// handler handles the events of a feed.
type handler func(watch.Event)

func (h handler) OnEvent(ev watch.Event) { h(ev) }

func (handler) Grant() {}

// foos are the resource of these tests in a version.
func foos(version string) discovery.Resource {
	return discovery.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: version, Resource: "foos"}, Kind: "Foo", Namespaced: true}
}

// rig is a feed of foos, which is not run, and the server's foos in team-a.
type rig struct {
	*Source
	t      *testing.T
	client *dynamicfake.FakeDynamicClient
}

// rigged returns a feed that watches these foos in team-a.
func rigged(t *testing.T, s Settings, names ...string) *rig {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		foos("v1").GVR: "FooList", foos("v2").GVR: "FooList",
	})
	set := watch.New(watch.Settings{Dynamic: client})
	t.Cleanup(set.Close)
	s.Name = dsl.ResourceName{Resource: "foos", Group: "example.com"}
	in := Cluster{Watches: set, Scope: NewScope(ScopeSettings{Of: dsl.Scope{Namespaces: []string{"team-a", "team-b"}}}), Outages: transport.NewOutages(logr.Discard())}
	r := &rig{Source: New(in, s), t: t, client: client}
	r.found(foos("v1"))
	r.create("v1", names...)
	if err := r.informers.open(t.Context(), []string{"team-a"}, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// create creates foos in team-a as they are in a version.
func (r *rig) create(version string, names ...string) {
	r.t.Helper()
	for _, name := range names {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/" + version, "kind": "Foo"}}
		o.SetName(name)
		o.SetUID(types.UID(name))
		if _, err := r.client.Resource(foos(version).GVR).Namespace("team-a").Create(r.t.Context(), o, metav1.CreateOptions{}); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) delete(name string) {
	r.t.Helper()
	if err := r.client.Resource(foos("v1").GVR).Namespace("team-a").Delete(r.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// held returns an object as a cache holds it.
func held(t *testing.T, metadata map[string]any) *cached.Object {
	t.Helper()
	transformer, err := new(cached.Compressor).NewTransformer(cached.Form{}, schema.GroupVersion{Group: "example.com", Version: "v1"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	o, err := transformer.Transform(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": metadata}})
	if err != nil {
		t.Fatal(err)
	}
	return o.(*cached.Object)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// remembered is the memory of reconciles in these tests.
type remembered struct{ uid types.UID }

// post is a box in a term, with events of one key.
type post struct {
	*Inbox[remembered]
	t   *testing.T
	key Key
	in  *queue.Queue[Key]
	// cache is that of children.
	cache shows
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{Inbox: New[remembered](keeper{}), t: t, key: Key{Namespace: "default", Name: "web"}, in: queue.New("", nil, func(k Key) string { return k.Namespace })}
	p.cache = newShows(t)
	p.Begin(p.in)
	t.Cleanup(p.End)
	return p
}

// shows is a cache of ConfigMaps.
type shows struct {
	*watch.Handle
	client dynamic.Interface
}

// newShows returns a cache that has listed nothing yet.
func newShows(t *testing.T) shows {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{configMaps: "ConfigMapList"})
	set := watch.New(watch.Settings{Dynamic: client})
	t.Cleanup(set.Close)
	h, err := set.Open(t.Context(), watch.Source{GVR: configMaps}, ignores{})
	if err != nil {
		t.Fatal(err)
	}
	return shows{h, client}
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func (s shows) Name() dsl.ResourceName { return dsl.ResourceName{} }

func (s shows) Resource() discovery.Resource { return discovery.Resource{} }

func (s shows) Informer(string) *watch.Handle { return s.Handle }

type ignores struct{}

func (ignores) OnEvent(watch.Event) {}

// keeper keeps every object, and logs nothing.
type keeper struct{}

func (keeper) Keeps(*cached.Object) bool { return true }

func (keeper) Leaves(watch.Event) bool { return true }

func (keeper) LogWait(Wait) {}

func (keeper) Echoed(Key, *cached.Object) {}

// object is an object as a cache holds it.
func (p *post) object(uid types.UID, version string, data ...any) *cached.Object {
	p.t.Helper()
	transformer, err := new(cached.Compressor).NewTransformer(cached.Form{}, schema.GroupVersion{Version: "v1"}, logr.Discard())
	if err != nil {
		p.t.Fatal(err)
	}
	o, err := transformer.Transform(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"namespace": "default", "name": "web", "uid": string(uid), "resourceVersion": version,
	}, "data": data}})
	if err != nil {
		p.t.Fatal(err)
	}
	return o.(*cached.Object)
}

// wrote notes an own write to a child.
func (p *post) wrote(child types.UID, version string) {
	p.t.Helper()
	p.Echo(p.key, Write{Cache: p.cache, Key: p.key, UID: child, Version: version}, Echo{version, p.object(child, version).Digest()})
}

func (p *post) event(kind watch.EventKind, uid types.UID, version string) watch.Event {
	return watch.Event{Kind: kind, Key: p.key, UID: uid, Object: p.object(uid, version)}
}

// taken says what a turn has for its reconcile.
func taken(t *Batch[remembered]) []string {
	var out []string
	for what, is := range map[string]bool{"fresh": t.Fresh, "child": t.Child, "related": t.Related != nil, "memory": t.Memory != nil} {
		if is {
			out = append(out, what)
		}
	}
	if t.Event != "" {
		out = append(out, string(t.Event))
	}
	for _, who := range t.Granted {
		out = append(out, "granted "+who)
	}
	for _, g := range t.Gone {
		out = append(out, "gone "+string(g.Object.GetUID()))
	}
	slices.Sort(out)
	return out
}

// failed runs a reconcile that ends with an error, and returns how many in a row failed before it.
func (p *post) failed(text string) (before int) {
	batch := p.Take(p.key)
	defer batch.Close()
	return batch.Failed(errors.New(text))
}

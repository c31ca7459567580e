// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// Location has the name and the version under which the API server serves a resource. Its methods may be called by any
// number of goroutines.
type Location struct {
	name dsl.ResourceName
	kind schema.GroupVersionKind

	mu    sync.Mutex
	place place
}

// place has the facts of a location at one time.
type place struct {
	// served is the resource that the API server serves under the name. Known is true while it does, as far as the source
	// knows.
	served discovery.Resource
	known  bool
	// absent is true if there is no CRD, so there are no objects.
	absent bool
}

func (l *Location) now() place {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.place
}

// found records what the API server serves.
func (l *Location) found(served discovery.Resource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.place = place{served: served, known: true}
}

// end records that the resource is gone. Resource still returns the last served one.
func (l *Location) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.place.known, l.place.absent = false, true
}

// unserved records whether a resource that is not served is gone.
func (l *Location) unserved(absent bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.place.absent = absent
}

// Name returns the resource as it was declared. If a kind was declared, it returns a name for people.
func (l *Location) Name() dsl.ResourceName { return l.name }

// ByKind reports whether a kind was declared, and not a name.
func (l *Location) ByKind() bool { return !l.kind.Empty() }

// OfKind returns the declared kind; empty if a name was declared.
func (l *Location) OfKind() schema.GroupKind { return l.kind.GroupKind() }

// Is reports whether the resource has this name, in its declaration or on the API server.
func (l *Location) Is(name dsl.ResourceName) bool {
	now := l.now()
	served := now.served.GVR
	return l.name == name || now.known && served.Resource == name.Resource && served.Group == name.Group &&
		(name.Version == "" || name.Version == served.Version)
}

// Known reports whether the API server serves the resource, as far as the source knows.
func (l *Location) Known() bool { return l.now().known }

// Resource returns the resource that the API server serves under the name. It is the zero value before that is known. If
// the resource is no longer served, it is the last served one.
func (l *Location) Resource() discovery.Resource { return l.now().served }

// Serves reports whether the API server serves this resource under the name.
func (l *Location) Serves(gvr schema.GroupVersionResource) bool {
	now := l.now()
	return now.known && now.served.GVR == gvr
}

// Absent reports whether the resource is known to be gone, or not to have come yet.
func (l *Location) Absent() bool { return l.now().absent }

// NewObject returns an object that has only its apiVersion and kind.
func (l *Location) NewObject() *unstructured.Unstructured {
	served := l.Resource()
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(served.GVR.GroupVersion().WithKind(served.Kind))
	return o
}

// Tree returns a copy of a cached object, with the fields that the cache holds: at least kind, name, UID and version.
func (l *Location) Tree(o *cached.Object) *unstructured.Unstructured {
	if t := o.Tree(); t != nil {
		return t
	}
	t := l.NewObject()
	t.SetNamespace(o.GetNamespace())
	t.SetName(o.GetName())
	t.SetUID(o.GetUID())
	t.SetResourceVersion(o.GetResourceVersion())
	return t
}

// locator asks the catalog where a resource is served. The source's own goroutine uses it.
type locator struct {
	at      *Location
	catalog *discovery.Catalog
}

// find records where the resource is served. The error wraps [discovery.ErrMissing] if it is not.
func (l *locator) find(ctx context.Context) error {
	served, err := l.look(ctx)
	if err == nil {
		l.at.found(served)
	}
	return err
}

// look resolves the resource as it was declared.
func (l *locator) look(ctx context.Context) (discovery.Resource, error) {
	return l.resolve(ctx, l.at.name, l.at.kind)
}

// resolve resolves a name, or a kind if there is one.
func (l *locator) resolve(ctx context.Context, name dsl.ResourceName, kind schema.GroupVersionKind) (discovery.Resource, error) {
	if !kind.Empty() {
		served, err := l.catalog.KindOf(ctx, kind)
		if err != nil {
			return discovery.Resource{}, err
		}
		name = dsl.ResourceName{Resource: served.GVR.Resource, Version: served.GVR.Version, Group: served.GVR.Group}
	}
	return l.catalog.Resolve(ctx, name)
}

// elsewhere returns another version in which the API server has the declared resource; empty if there is none.
func (l *locator) elsewhere(ctx context.Context) string {
	name, kind := l.at.name, l.at.kind
	name.Version, kind.Version = "", ""
	served, err := l.resolve(ctx, name, kind)
	if err != nil || served.GVR.Version == l.at.name.Version || served.GVR.Version == l.at.kind.Version {
		return "" // the resource has come since the first request; the next look finds it
	}
	return served.GVR.Version
}

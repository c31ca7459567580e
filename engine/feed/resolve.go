// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
)

// resolve finds what is served under the name, or of the kind.
func (f *Feed) resolve(ctx context.Context) bool {
	if f.Known() {
		return true
	}
	served, err := f.look(ctx, f.settings.Name, f.settings.Kind)
	if errors.Is(err, catalog.ErrMissing) {
		f.unserved(ctx)
		return false
	}
	observes := false
	if err == nil {
		observes, err = f.observable(ctx, served)
	}
	if err != nil {
		f.fail(err)
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.served, f.known, f.observes, f.absent = served, true, observes, false
	return true
}

// observable reports whether the engine keeps progress in status.observedGeneration.
func (f *Feed) observable(ctx context.Context, served catalog.Resource) (bool, error) {
	if !f.settings.ObservedGeneration {
		return false, nil
	}
	observes, err := f.cluster.Catalog.ObservedGeneration(ctx, served)
	if err == nil && !observes {
		f.settings.Log.Info("schema has no status.observedGeneration; progress is kept in an annotation")
	}
	return observes, err
}

// look asks the catalog for a name, or for a kind where there is one.
func (f *Feed) look(ctx context.Context, name dsl.ResourceName, kind schema.GroupVersionKind) (catalog.Resource, error) {
	if !kind.Empty() {
		served, err := f.cluster.Catalog.KindOf(ctx, kind)
		if err != nil {
			return catalog.Resource{}, err
		}
		name = dsl.ResourceName{Resource: served.GVR.Resource, Version: served.GVR.Version, Group: served.GVR.Group}
	}
	return f.cluster.Catalog.Resolve(ctx, name)
}

// elsewhere returns another version in which the API server has what was declared, empty when it
// does not have it at all.
func (f *Feed) elsewhere(ctx context.Context) string {
	name, kind := f.settings.Name, f.settings.Kind
	name.Version, kind.Version = "", ""
	served, err := f.look(ctx, name, kind)
	if err != nil || served.GVR.Version == f.settings.Name.Version || served.GVR.Version == f.settings.Kind.Version {
		return "" // the second one is there since the first question was asked; the next look finds it
	}
	return served.GVR.Version
}

// Name is the resource as it was declared, or as it is called for people where a kind was.
func (f *Feed) Name() dsl.ResourceName { return f.settings.Name }

// ByKind reports whether a kind was declared, and not a name.
func (f *Feed) ByKind() bool { return !f.settings.Kind.Empty() }

// OfKind is the kind that was declared, empty where a name was.
func (f *Feed) OfKind() schema.GroupKind { return f.settings.Kind.GroupKind() }

// Is reports whether the feed is that of a resource, by the name that it was declared with or has.
func (f *Feed) Is(name dsl.ResourceName) bool {
	served := f.Resource().GVR
	return f.settings.Name == name || f.Known() && served.Resource == name.Resource && served.Group == name.Group &&
		(name.Version == "" || name.Version == served.Version)
}

// Known reports whether the API server serves the resource, as far as the feed knows.
func (f *Feed) Known() bool { return f.now().known }

// Resource is what the API server serves under the name. It is the zero value before that is known, and what it
// was when the resource is not served any more.
func (f *Feed) Resource() catalog.Resource { return f.now().served }

// Serves reports whether the feed brings in this resource.
func (f *Feed) Serves(gvr schema.GroupVersionResource) bool {
	now := f.now()
	return now.known && now.served.GVR == gvr
}

// WatchChanged handles a change of the state of an informer of this resource: if it may be the feed's, the feed takes a step. It
// never blocks.
func (f *Feed) WatchChanged(gvr schema.GroupVersionResource) {
	f.mu.Lock()
	mine := f.known && (f.served.GVR == gvr || f.next != nil && f.next.served.GVR == gvr)
	f.mu.Unlock()
	if mine {
		f.Nudge()
	}
}

// KeepsGeneration reports whether the engine keeps progress in status.observedGeneration. It is false if [Settings].ObservedGeneration
// is.
func (f *Feed) KeepsGeneration() bool {
	now := f.now()
	return now.observes && now.served.Status
}

// Absent reports whether the resource is known to be gone, or not to have come yet.
func (f *Feed) Absent() bool { return f.now().absent }

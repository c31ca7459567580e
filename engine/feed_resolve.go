// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// resolve finds what is served under the name, or of the kind.
func (f *feed) resolve(ctx context.Context) bool {
	if f.isKnown() {
		return true
	}
	served, err := f.look(ctx)
	switch {
	case errors.Is(err, catalog.ErrMissing):
		f.unserved(ctx)
		return false
	case err != nil:
		f.fail(err)
		return false
	}
	observes, err := f.observable(ctx, served)
	if err != nil {
		f.fail(err)
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.served, f.known, f.observes, f.absent = served, true, observes, false
	return true
}

// observable finds out whether what was handled can be kept in status.observedGeneration, where that
// matters.
func (f *feed) observable(ctx context.Context, served catalog.Resource) (bool, error) {
	if !f.generation {
		return false, nil
	}
	observes, err := f.catalog.ObservedGeneration(ctx, served)
	if err == nil && !observes {
		f.log.Info("its schema has no status.observedGeneration; what was handled is kept in an annotation")
	}
	return observes, err
}

// look asks the catalog for what was declared.
func (f *feed) look(ctx context.Context) (catalog.Resource, error) {
	name := f.name
	if !f.kind.Empty() {
		served, err := f.catalog.KindOf(ctx, f.kind)
		if err != nil {
			return catalog.Resource{}, err
		}
		name = dsl.ResourceName{Resource: served.GVR.Resource, Version: served.GVR.Version, Group: served.GVR.Group}
	}
	return f.catalog.Resolve(ctx, name)
}

// elsewhere returns another version in which the API server has what was declared, empty when it
// does not have it at all.
func (f *feed) elsewhere(ctx context.Context) string {
	other := &feed{name: f.name, kind: f.kind, catalog: f.catalog}
	other.name.Version, other.kind.Version = "", ""
	served, err := other.look(ctx)
	if err != nil || served.GVR.Version == f.name.Version || served.GVR.Version == f.kind.Version {
		return "" // the second one is there since the first question was asked; the next look finds it
	}
	return served.GVR.Version
}

// is reports whether the feed is that of a resource, by the name that it was declared with or has.
func (f *feed) is(name dsl.ResourceName) bool {
	served := f.resource().GVR
	return f.name == name || f.isKnown() && served.Resource == name.Resource && served.Group == name.Group &&
		(name.Version == "" || name.Version == served.Version)
}

// readable reports why the cache cannot be asked for objects of the namespace, or of any when it is
// empty, if so.
func (f *feed) readable(namespace string) error {
	if len(f.opened()) == 0 {
		return f.unread(namespace)
	}
	found := false
	for _, h := range f.all() {
		if ns := h.Source().Namespace; namespace != "" && ns != "" && ns != namespace {
			continue
		}
		found = true
		if err := f.whole(h); err != nil {
			return err
		}
	}
	if names, _ := f.scope.names(f.resource().Namespaced); !found && slices.Contains(names, namespace) {
		return f.unread(namespace)
	}
	return nil
}

// whole reports why an informer's cache is not to be taken for what there is, if so: it is not
// complete yet, or it has not been told of changes for long.
func (f *feed) whole(h *watch.Handle) error {
	if !h.Synced() {
		return fmt.Errorf("reading %s: its first listing is not complete", f.name)
	}
	state := h.State()
	if !state.Blind {
		return nil
	}
	why := f.hindered(h.Source().Namespace)
	if why.phase != phaseForbidden {
		why = hindrance{phase: phaseFaulty, text: state.Fault.Error()}
	}
	return &unreadError{f.name.String(), why}
}

// complete reports why the cache may not have every object in the operator's scope as it is, if so. A
// resource without a CRD has no objects; that it is not served says nothing.
func (f *feed) complete() error {
	if f.isAbsent() {
		return nil
	}
	namespaces, known := f.scope.names(f.resource().Namespaced)
	if !known || !f.isKnown() {
		return f.unread("")
	}
	for _, ns := range namespaces {
		opened := f.handle(ns)
		if opened == nil {
			return f.unread(ns)
		}
		if err := f.whole(opened); err != nil {
			return err
		}
	}
	return nil
}

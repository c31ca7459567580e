// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
)

// kinds are the kinds of the children of a resource's objects.
type kinds struct {
	// own is the source of the owners. Feeds are the sources of the kinds that the resource owns.
	own   *source.Source
	feeds []*source.Source
	// retired are kinds that earlier versions of the resource owned, and this one does not.
	retired *prune.Retired
}

// named returns the source of an owned resource; nil if the resource is not declared.
func (k *kinds) named(name dsl.ResourceName) *source.Source {
	if i := slices.IndexFunc(k.feeds, func(each *source.Source) bool { return each.Is(name) }); i >= 0 {
		return k.feeds[i]
	}
	return nil
}

// repeats reports whether a source that was declared by kind serves the same resource as one declared by name. The
// declarations alone do not show it, because the plural of a kind cannot always be guessed.
func (k *kinds) repeats(kind *source.Source) bool {
	return kind.ByKind() && slices.ContainsFunc(k.feeds, func(other *source.Source) bool {
		return !other.ByKind() && other.Serves(kind.Resource().GVR)
	})
}

// all yields one source for each kind that is known.
func (k *kinds) all(yield func(*source.Source) bool) {
	for _, kind := range k.feeds {
		if kind.Known() && !k.repeats(kind) && !yield(kind) {
			return
		}
	}
	for _, kind := range k.retired.Sources() {
		if kind.Known() && kind.Complete() == nil && !k.owns(kind.OfKind()) && !yield(kind) {
			return
		}
	}
}

// complete returns an error unless the caches show the children of all kinds.
func (k *kinds) complete() error {
	for _, kind := range k.feeds {
		if err := kind.Complete(); err != nil {
			return fmt.Errorf("listing children: %w", err)
		}
	}
	return nil
}

// current returns an error unless the caches show all children and receive their changes.
func (k *kinds) current() error {
	if err := k.complete(); err != nil {
		return err
	}
	for kind := range k.all {
		for _, h := range kind.Informers("") {
			if since := h.State().Stale; !since.IsZero() {
				return fmt.Errorf("listing children: no watch of %s is open since %s", kind.Name(), since.Format(time.RFC3339))
			}
		}
	}
	return k.settled("listing children")
}

// settled returns an error while the caches of owners and of children may be from two states of the API server. This
// happens when its versions have gone back. Until all caches have listed again, it is unknown which children are wanted.
func (k *kinds) settled(what string) error {
	if k.own.IsBehind() {
		return watch.Behind(what, k.own.Name().String())
	}
	for kind := range k.all {
		if kind.IsBehind() {
			return watch.Behind(what, kind.Name().String())
		}
	}
	return nil
}

// listed returns an error while the cache of owners, or of children of one kind, may be from before the API server's
// versions went back. An older owner wants other children. A child that the cache lacks may exist: applying it would
// cost a creation, a conflict and a read. Kind is nil for a child that is in no cache.
func (k *kinds) listed(what string, kind *source.Source) error {
	for _, source := range []*source.Source{k.own, kind} {
		if source != nil && source.IsBehind() {
			return watch.Behind(what, source.Name().String())
		}
	}
	return nil
}

// declared returns the source of the owned resource that serves a kind. It returns the source's error while the objects
// of the namespace cannot be read.
func (k *kinds) declared(kind schema.GroupVersionKind, namespace string) (*source.Source, error) {
	for _, each := range k.feeds {
		if !each.Known() || each.Resource().GroupKind() != kind.GroupKind() {
			continue
		}
		if served := each.Resource().GVR.GroupVersion(); served != kind.GroupVersion() {
			return nil, dsl.Permanent(fmt.Errorf("its apiVersion is %s, but children of its kind are watched as %s", kind.GroupVersion(), served))
		}
		return each, each.Readable(namespace)
	}
	for _, each := range k.feeds {
		if now := each.Status(); !each.Known() && each.Name().Group == kind.Group {
			return nil, fmt.Errorf("%s is %s: %s", each.Name(), now.Phase, now.Message)
		}
	}
	return nil, dsl.Permanent(errors.New("no resource of that kind is declared with owns"))
}

// present is declared for existing children, which may be of a retired kind.
func (k *kinds) present(kind schema.GroupVersionKind, namespace string) (*source.Source, error) {
	for each := range k.all {
		if each.Resource().GroupKind() == kind.GroupKind() {
			return each, each.Readable(namespace)
		}
	}
	return k.declared(kind, namespace)
}

// claimed reports whether the object at a place names the owner as its own, and whether that is known. A cache without
// an open watch shows which objects exist, and does not prove that one is absent.
func (k *kinds) claimed(owner ownership.Owner, place ownership.Place) (there, known bool) {
	kind, h := k.shows(place)
	if h == nil || !h.Synced() {
		return false, false
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	o, found := h.Object(key)
	if !found && kind.Undelivered(key) {
		return false, false // the deletion event has yet to find the owner by its inventory
	}
	there = found && owner.Lists(o)
	return there, there || h.State().Stale.IsZero()
}

// shows returns the source of a place's kind, and the informer that covers the place. Both are nil if the family has no
// such kind.
func (k *kinds) shows(place ownership.Place) (*source.Source, *watch.Handle) {
	for kind := range k.all {
		if kind.Resource().GroupKind() == place.Kind {
			return kind, kind.Informer(place.Namespace)
		}
	}
	return nil, nil
}

// unknown returns an error until discovery knows all kinds that the resource owns.
func (k *kinds) unknown() error {
	for _, kind := range k.feeds {
		if err := kind.Complete(); err != nil && !kind.Known() {
			return fmt.Errorf("listing children: %w", err)
		}
	}
	return nil
}

// owns reports whether the resource owns a kind, as far as the API server's discovery is known.
func (k *kinds) owns(kind schema.GroupKind) bool {
	return slices.ContainsFunc(k.feeds, func(declared *source.Source) bool {
		return declared.OfKind() == kind || declared.Known() && declared.Resource().GroupKind() == kind
	})
}

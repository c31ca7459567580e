// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// childFeedOf prepares the feed of a kind of children.
func (r *resource) childFeedOf(owned dsl.OwnedKind) *feed.Feed {
	var f *feed.Feed
	f = r.engine.newFeed(feed.Settings{
		Name: owned.Name, Kind: owned.Kind, Log: r.log.WithValues("child", owned.Name.String()), Granted: r.box.Grant,
		On: func(ev watch.Event) {
			if !r.repeats(f) {
				r.childSeen(f, ev)
			}
		},
	})
	return f
}

// repeats reports whether a feed that was declared by kind brings in what another one, declared by
// name, does already: the plural of a kind is not always what one would guess.
func (r *resource) repeats(f *feed.Feed) bool {
	return f.ByKind() && slices.ContainsFunc(r.children, func(other *feed.Feed) bool {
		return !other.ByKind() && other.Serves(f.Resource().GVR)
	})
}

// ownerKey returns the key of the object of this resource that o is a child of: the one that
// controls it, or, where none does, the one that its owner label and annotation name together. That
// one may have another uid, and be the next object of the owner's name. Where what o says does not
// count by itself, the owner's record must list it: anybody can write the rest, and wake others with it.
func (r *resource) ownerKey(f *feed.Feed, o *cached.Object) *cache.ObjectName {
	if o == nil {
		return nil
	}
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		return r.labelledOwner(f, o)
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || !r.serves(schema.GroupKind{Group: gv.Group, Kind: ref.Kind}) {
		return nil
	}
	key := cache.ObjectName{Name: ref.Name}
	if r.own.Resource().Namespaced {
		key.Namespace = o.GetNamespace()
	}
	name := child.OwnerName{Kind: gv.WithKind(ref.Kind).GroupKind(), Namespace: key.Namespace, Name: key.Name}
	if !name.Near(o.GetNamespace()) && !r.records.has(key, placeIn(f, nameOf(o))) {
		return nil
	}
	return &key
}

// labelledOwner is ownerKey for an object that nobody controls. The annotation names the owner, the
// label must be that one's, for another object may have the name now, and its record must list the
// object: anybody can write the rest, and wake others with it.
func (r *resource) labelledOwner(f *feed.Feed, o *cached.Object) *cache.ObjectName {
	label := o.Label(r.engine.op.OwnerLabel())
	if label == "" {
		return nil
	}
	name, ok := child.ParseOwnerName(o.GetAnnotations()[r.engine.op.OwnerAnnotation()])
	if !ok || !r.serves(name.Kind) {
		return nil
	}
	key := cache.ObjectName{Namespace: name.Namespace, Name: name.Name}
	if label != name.Retained() {
		if owner, found := r.own.Get(key); (!found || string(owner.GetUID()) != label) && !r.box.Departs(key, types.UID(label)) {
			return nil
		}
	}
	if !r.records.has(key, placeIn(f, nameOf(o))) {
		return nil
	}
	return &key
}

// serves reports whether the resource's objects are of this kind.
func (r *resource) serves(kind schema.GroupKind) bool {
	served := r.own.Resource()
	return kind.Kind == served.Kind && kind.Group == served.GVR.Group
}

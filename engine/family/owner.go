// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package family

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// seen takes an event of an object that may be a child: its owner is looked at again. An object that changed owners
// is news for both.
func (f *Family) seen(kind *feed.Feed, ev watch.Event) {
	defer f.settings.Box.Wake(ev.UID)
	owner := f.ownerKey(kind, ev.Object)
	if owner != nil {
		f.settings.Box.ChildSeen(*owner, ev)
	}
	if before := f.ownerKey(kind, ev.Old); before != nil && (owner == nil || *owner != *before) {
		f.settings.Box.ChildSeen(*before, ev)
	}
}

// ownerKey returns the key of the object of this resource that o is a child of: the one that
// controls it, or, where none does, the one that its owner label and annotation name together. That
// one may have another uid, and be the next object of the owner's name. Where what o says does not
// count by itself, the owner's record must list it: anybody can write the rest, and wake others with it.
func (f *Family) ownerKey(kind *feed.Feed, o *cached.Object) *inbox.Key {
	if o == nil {
		return nil
	}
	var name child.OwnerName
	ref, label := metav1.GetControllerOfNoCopy(o), ""
	if ref != nil {
		name.Kind, name.Name = schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name
		if f.settings.Own.Resource().Namespaced {
			name.Namespace = o.GetNamespace()
		}
	} else if label = o.Label(f.keys.Label); label != "" {
		name, _ = child.ParseOwnerName(o.GetAnnotations()[f.keys.Owner])
	}
	if name.Name == "" || name.Kind != kindOf(f.settings.Own) {
		return nil
	}
	key := inbox.Key{Namespace: name.Namespace, Name: name.Name}
	if ref == nil && !f.labels(key, name, label) {
		return nil
	}
	place := child.Place{Kind: kindOf(kind), Namespace: o.GetNamespace(), Name: o.GetName()}
	if (ref == nil || !name.Near(place.Namespace)) && !f.records.List(key, place) {
		return nil
	}
	return &key
}

// labels reports whether a label is that of the object that has the key now, for another one may have its name, or of
// one of that name whose children are retained.
func (f *Family) labels(key inbox.Key, name child.OwnerName, label string) bool {
	if label == name.Retained() {
		return true
	}
	owner, found := f.settings.Own.Get(key)
	return found && string(owner.GetUID()) == label || f.settings.Box.Departs(key, types.UID(label))
}

// kindOf is the kind of the objects of a feed.
func kindOf(f *feed.Feed) schema.GroupKind {
	served := f.Resource()
	return schema.GroupKind{Group: served.GVR.Group, Kind: served.Kind}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package family

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

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
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		return f.labelledOwner(kind, o)
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || !f.serves(schema.GroupKind{Group: gv.Group, Kind: ref.Kind}) {
		return nil
	}
	key := inbox.Key{Name: ref.Name}
	if f.settings.Own.Resource().Namespaced {
		key.Namespace = o.GetNamespace()
	}
	name := child.OwnerName{Kind: gv.WithKind(ref.Kind).GroupKind(), Namespace: key.Namespace, Name: key.Name}
	if !name.Near(o.GetNamespace()) && !f.records.List(key, placeIn(kind, cache.MetaObjectToName(o))) {
		return nil
	}
	return &key
}

// labelledOwner is ownerKey for an object that nobody controls. The annotation names the owner, the
// label must be that one's, for another object may have the name now, and its record must list the
// object: anybody can write the rest, and wake others with it.
func (f *Family) labelledOwner(kind *feed.Feed, o *cached.Object) *inbox.Key {
	label := o.Label(f.keys.Label)
	if label == "" {
		return nil
	}
	name, ok := child.ParseOwnerName(o.GetAnnotations()[f.keys.Owner])
	if !ok || !f.serves(name.Kind) {
		return nil
	}
	key := inbox.Key{Namespace: name.Namespace, Name: name.Name}
	if label != name.Retained() {
		if owner, found := f.settings.Own.Get(key); (!found || string(owner.GetUID()) != label) && !f.settings.Box.Departs(key, types.UID(label)) {
			return nil
		}
	}
	if !f.records.List(key, placeIn(kind, cache.MetaObjectToName(o))) {
		return nil
	}
	return &key
}

// serves reports whether the resource's objects are of this kind.
func (f *Family) serves(kind schema.GroupKind) bool {
	served := f.settings.Own.Resource()
	return kind.Kind == served.Kind && kind.Group == served.GVR.Group
}

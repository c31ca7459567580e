// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// childFeedOf prepares the feed of a kind of children.
func (r *resource) childFeedOf(owned dsl.OwnedKind) *feed {
	f := r.engine.newFeed(owned.Name, r.log.WithValues("child", owned.Name.String()), nil)
	f.kind = owned.Kind
	f.on = func(ev watch.Event) {
		if f.kind.Empty() || !r.repeats(f) {
			r.childSeen(f, ev)
		}
	}
	return f
}

// repeats reports whether a feed that was declared by kind brings in what another one, declared by
// name, does already: the plural of a kind is not always what one would guess.
func (r *resource) repeats(f *feed) bool {
	for _, other := range r.children {
		if !f.kind.Empty() && other.kind.Empty() && other.isKnown() && other.resource().GVR == f.resource().GVR {
			return true
		}
	}
	return false
}

// unseen says why the objects of a namespace are not watched.
func (f *feed) unseen(namespace string) error {
	if names, _ := f.scope.names(true); slices.Contains(names, namespace) {
		return f.refusal(f.unread(namespace))
	}
	if f.scope.live && f.scope.matches(namespace) { // and so does not exist, or the names would have it
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, namespace)
	}
	return errors.New("the namespace is not one that the operator watches")
}

// ownerKey returns the key of the object of this resource that o is a child of: the one that
// controls it, or, where none does, the one that its owner label and annotation name together. That
// one may have another uid, and be the next object of the owner's name. Where what o says does not
// count by itself, the owner's record must list it: anybody can write the rest, and wake others with it.
func (r *resource) ownerKey(f *feed, o *watch.Object) *cache.ObjectName {
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
	if r.own.resource().Namespaced {
		key.Namespace = o.GetNamespace()
	}
	name := child.OwnerName{Kind: gv.WithKind(ref.Kind).GroupKind(), Namespace: key.Namespace, Name: key.Name}
	if !name.Near(o.GetNamespace()) && !r.lists(key, placeIn(f, nameOf(o))) {
		return nil
	}
	return &key
}

// labelledOwner is ownerKey for an object that nobody controls. The annotation names the owner, the
// label must be that one's, for another object may have the name now, and its record must list the
// object: anybody can write the rest, and wake others with it.
func (r *resource) labelledOwner(f *feed, o *watch.Object) *cache.ObjectName {
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
		if owner, found := r.own.object(key); (!found || string(owner.GetUID()) != label) && !r.departs(key, label) {
			return nil
		}
	}
	if !r.lists(key, placeIn(f, nameOf(o))) {
		return nil
	}
	return &key
}

// departs reports whether an object of this uid is being seen off that the cache does not show any more.
func (r *resource) departs(key cache.ObjectName, uid string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, known := r.entries[key]
	return known && slices.ContainsFunc(e.gone, func(d *departed) bool { return string(d.object.GetUID()) == uid })
}

// serves reports whether the resource's objects are of this kind.
func (r *resource) serves(kind schema.GroupKind) bool {
	served := r.own.resource()
	return kind.Kind == served.Kind && kind.Group == served.GVR.Group
}

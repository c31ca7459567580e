// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// EventKind says what happened to an object.
type EventKind int

// The kinds of events.
const (
	// Added: the object is new to this owner.
	Added EventKind = iota
	// Updated: the object changed.
	Updated
	// Deleted: the object is gone, or no longer selected.
	Deleted
)

// String names the kind, as in "added".
func (k EventKind) String() string {
	switch k {
	case Added:
		return "added"
	case Updated:
		return "updated"
	default:
		return "deleted"
	}
}

// Event is a change of an object. When it arrives the cache shows this state of
// the object, or a later one.
type Event struct {
	Kind EventKind
	Key  cache.ObjectName
	// UID is the object's uid. If an object was deleted and created again, there is a Deleted with the old uid and an
	// Added with the new one, even if the watch saw neither.
	UID types.UID
	// Unseen is true if the watch missed the deletion: a listing lacks the object, or has another uid under its name. A
	// server that lags behind lists the same, so a read of the object has to confirm the deletion.
	Unseen bool
	// Initial is true if the object existed when the owner opened the source, or in the first listing.
	Initial bool
	// Object is the current object, or for Deleted its last known state. If the watch missed the deletion, that state
	// may be old. In this case client-go may know only the name, and the object has nothing else, not even a uid. It is
	// never nil.
	Object *cached.Object
	// Old is the object before an update; nil for other events.
	Old *cached.Object
}

// Handler handles the events of a source for one owner; see [Set.Open].
type Handler interface {
	OnEvent(Event)
}

// sink turns an informer's notifications into events for one owner.
type sink struct {
	handler Handler
	seen    *observer
}

var _ cache.ResourceEventHandler = sink{}

// OnAdd delivers a new object.
func (s sink) OnAdd(obj any, initial bool) {
	if o, ok := obj.(*cached.Object); ok {
		s.handler.OnEvent(Event{Kind: Added, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Initial: initial, Object: o})
	}
}

// OnUpdate delivers a changed object. A relist notifies of unchanged ones too; those are dropped.
func (s sink) OnUpdate(before, after any) {
	old, was := before.(*cached.Object)
	o, is := after.(*cached.Object)
	switch {
	case !was || !is:
	case old.GetUID() != o.GetUID():
		s.handler.OnEvent(Event{Kind: Deleted, Key: cache.MetaObjectToName(old), UID: old.GetUID(), Unseen: true, Object: old})
		s.OnAdd(o, false)
	case old.GetResourceVersion() != o.GetResourceVersion() || o.GetResourceVersion() == "", // fakes have no versions
		s.seen.era.epoch() > 0 && !old.Equal(o): // a version that has gone back is given to another change
		s.handler.OnEvent(Event{Kind: Updated, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Object: o, Old: old})
	}
}

// OnDelete delivers a deletion. If the watch missed it, obj is a tombstone.
func (s sink) OnDelete(obj any) {
	gone, unseen := obj.(cache.DeletedFinalStateUnknown)
	if unseen {
		obj = gone.Obj
	}
	if o, ok := obj.(*cached.Object); ok {
		s.handler.OnEvent(Event{Kind: Deleted, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Unseen: unseen, Object: o})
		return
	}
	if key, err := cache.ParseObjectName(gone.Key); unseen && err == nil {
		s.handler.OnEvent(Event{Kind: Deleted, Key: key, Unseen: true, Object: cached.Named(key.Namespace, key.Name)})
	}
}

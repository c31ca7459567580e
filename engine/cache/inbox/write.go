// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// Patience is how long a key is parked before the server is asked whether the awaited writes were lost.
const Patience = time.Minute

// Cache is the source of a resource.
type Cache interface {
	Name() dsl.ResourceName
	Resource() discovery.Resource
	// Informer returns the informer of a namespace; nil if there is none.
	Informer(namespace string) *watch.Handle
}

// Write is a write of this operator that a cache has to show.
type Write struct {
	Cache Cache
	// Key and UID are the written object's.
	Key Key
	UID types.UID
	// Version is the written version; empty for a deletion.
	Version string
	// Gone is true if the write removed the object.
	Gone bool
	// Own is true if the object is of the resource whose reconcile wrote it.
	Own bool
	// since is the cache's epoch when the write was recorded, plus one; zero if that is unknown.
	since uint64
}

// noted returns the write with the cache's epoch at this time.
func (w Write) noted() Write {
	if w.since == 0 && w.Cache != nil {
		if h := w.Cache.Informer(w.Key.Namespace); h != nil {
			w.since = h.Epoch() + 1
		}
	}
	return w
}

// Shown reports whether the cache shows the write. A write to a resource that is no longer watched counts as shown.
//
// If the API server's versions have gone back, the version of the write proves nothing: the write may be undone, and its
// version given to another one. A listing that began later shows the outcome then.
func (w Write) Shown() bool {
	h := w.Cache.Informer(w.Key.Namespace)
	switch {
	case h == nil:
		return true
	case h.Behind():
		return false
	case w.since > 0 && h.Epoch()+1 > w.since:
		return true
	}
	if w.Version != "" && !w.Gone {
		return h.CaughtUp(w.Version)
	}
	o := w.object()
	return o == nil || !w.Gone && o.GetDeletionTimestamp() != nil
}

// object returns the written object from the cache; nil if the cache has none, or another one of the name.
func (w Write) object() *cached.Object {
	h := w.Cache.Informer(w.Key.Namespace)
	if h == nil {
		return nil
	}
	o, found := h.Object(w.Key)
	if !found || o.GetUID() != w.UID {
		return nil
	}
	return o
}

// awaited reports whether reconciles wait for the write.
//
// No reconcile waits for a blind cache of children, above all no deletion. Until a watch is open again, handlers that
// read the cache get an error. The object itself is read from its own cache, so no reconcile begins before that cache
// has caught up.
func (w Write) awaited() bool {
	if w.Shown() {
		return false
	}
	h := w.Cache.Informer(w.Key.Namespace)
	return w.Own || h != nil && !h.State().Blind
}

// Read reads one object from the server; nil if it is gone.
type Read func(context.Context, schema.GroupVersionResource, Key) (*unstructured.Unstructured, error)

// comes reports whether the cache has no fault, so that it should show the write.
func (w Write) comes() bool {
	h := w.Cache.Informer(w.Key.Namespace)
	return h != nil && h.State().Fault == nil
}

// lost reports whether the server does not know the write.
func (w Write) lost(ctx context.Context, read Read) bool {
	if !w.comes() {
		return false
	}
	live, err := read(ctx, w.Cache.Resource().GVR, w.Key)
	if err != nil {
		return false // the next check shows it
	}
	if w.Version == "" || w.Gone {
		return live != nil && live.GetUID() == w.UID && (w.Gone || live.GetDeletionTimestamp() == nil)
	}
	if live == nil || live.GetUID() != w.UID {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), w.Version)
	return err == nil && order < 0
}

// Writes are the writes that the next reconcile over an object waits for.
type Writes struct {
	all []Write
	// parked is since when the object waits for them, or when the server was last asked about them; zero if it does not
	// wait.
	parked time.Time
}

// Expect adds writes by reconciles over other objects, if they are to the object with this UID and not shown yet.
func (w *Writes) Expect(uid types.UID, writes []Write) {
	for _, one := range writes {
		if one.UID == uid && !one.Shown() {
			w.Add(one)
		}
	}
}

// Clone returns a copy.
func (w *Writes) Clone() Writes { return Writes{slices.Clone(w.all), w.parked} }

// AddAll adds writes that earlier reconciles waited for.
func (w *Writes) AddAll(writes []Write) { w.all = append(w.all, writes...) }

// take returns the writes, and forgets them.
func (w *Writes) take() []Write {
	all := w.all
	w.all = nil
	return all
}

// Add adds one write to wait for.
func (w *Writes) Add(one Write) { w.all = append(w.all, one.noted()) }

// Shown reports whether the caches show all writes that they can show at the moment. Of the others, the last write to
// each object is kept: reconciles wait for it once a watch is open again.
func (w *Writes) Shown() bool {
	if !Shown(w.all) {
		return false
	}
	w.parked = time.Time{}
	w.Tidy()
	return true
}

// Shown reports whether the next reconcile can begin without waiting for writes.
func Shown(writes []Write) bool { return !slices.ContainsFunc(writes, Write.awaited) }

// Tidy removes the writes that the caches show, and the writes to an object that was written again later.
func (w *Writes) Tidy() {
	type object struct {
		in  Cache
		key Key
	}
	var later map[object]bool
	var left []Write
	for _, one := range slices.Backward(w.all) {
		if of := (object{one.Cache, one.Key}); !later[of] && !one.Shown() {
			if later == nil {
				later = map[object]bool{}
			}
			later[of], left = true, append(left, one)
		}
	}
	slices.Reverse(left)
	w.all = left
}

// FindLost asks the server about the awaited writes of a key that has been parked for long, because they may never be
// shown. It gives up writes that the server does not know: it was restored from a backup, and its versions have gone
// back. It reports whether the key need not wait any longer.
func (w *Writes) FindLost(ctx context.Context, read Read) bool {
	if w.parked.IsZero() || time.Since(w.parked) < Patience {
		return false
	}
	w.all = slices.DeleteFunc(w.all, func(one Write) bool { return one.Shown() || one.lost(ctx, read) })
	if !w.Shown() {
		w.parked = time.Now()
		return false
	}
	return true
}

// park records since when the writes are waited for, and returns their objects.
func (w *Writes) park() (uids []types.UID) {
	if w.parked.IsZero() {
		w.parked = time.Now()
	}
	for _, one := range w.all {
		uids = append(uids, one.UID)
	}
	return uids
}

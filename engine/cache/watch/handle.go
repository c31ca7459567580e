// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// Handle is one owner's hold on a source. Its methods may be called by any number of goroutines.
// What it returns is shared and never changes.
type Handle struct {
	set      *Set
	informer *informer
	joined   cache.ResourceEventHandlerRegistration
	once     sync.Once
	closed   chan struct{}
}

// Close ends the use of the source. The last owner's Close stops the informer and waits until it has stopped. After any
// Close the callback does not run. Close must not be called from a callback, because it would wait for that callback.
// Closing twice does nothing. Reads after it show what was last seen.
func (h *Handle) Close() {
	h.once.Do(func() {
		close(h.closed)
		if h.set.release(h.informer) {
			h.informer.end()
		} else {
			h.informer.leave(h.joined)
		}
	})
}

// Source returns the source with its defaults filled in.
func (h *Handle) Source() Source { return h.informer.src }

// Object returns the object of that name.
func (h *Handle) Object(key cache.ObjectName) (*cached.Object, bool) {
	return h.informer.object(key)
}

// Objects returns all objects, in no order.
func (h *Handle) Objects() []*cached.Object {
	items := h.informer.shared.GetIndexer().List()
	out := make([]*cached.Object, 0, len(items))
	for _, item := range items {
		if o, ok := item.(*cached.Object); ok {
			out = append(out, o)
		}
	}
	return out
}

// OwnedBy returns the objects whose controlling owner reference has this uid, or whose label Settings.OwnerLabel has
// this value, in no order.
func (h *Handle) OwnedBy(owner string) []*cached.Object {
	return ownedBy(h.informer.shared.GetIndexer(), owner)
}

// Len returns the number of objects.
func (h *Handle) Len() int { return len(h.informer.shared.GetIndexer().ListKeys()) }

// Synced reports whether the callback has returned for every object of the first listing.
func (h *Handle) Synced() bool { return h.joined.HasSynced() }

// WaitSynced waits until Synced, and returns true. It returns false if the context ends or the handle is closed first.
func (h *Handle) WaitSynced(ctx context.Context) bool {
	select {
	case <-h.joined.HasSyncedChecker().Done():
		return true
	case <-ctx.Done():
	case <-h.closed:
	case <-h.informer.done:
	}
	return false
}

// ResourceVersion returns the version that the cache has caught up to, empty before the first
// listing. It moves with every event and, while nothing happens, about once a minute.
func (h *Handle) ResourceVersion() string {
	return h.informer.version()
}

// CaughtUp reports whether the cache holds the server's state of a version, which must be a version of this resource.
// Versions that cannot be compared count as caught up: there is nothing to wait for. The callback may yet have to run
// for the newest events.
func (h *Handle) CaughtUp(version string) bool {
	if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(h.ResourceVersion(), version)
	if err != nil {
		return h.informer.shared.HasSynced()
	}
	return order >= 0
}

// Behind reports whether the API server's versions have gone back and the cache has not listed again: it may be from
// before.
func (h *Handle) Behind() bool { return h.informer.seen.behind() }

// Epoch returns how often the API server's versions had gone back when the listing in the cache began.
func (h *Handle) Epoch() uint64 { return h.informer.seen.era.epoch() }

// Retry ends the source's wait before its next attempt, because the reason for its fault may be gone. It has no effect on a
// source without a fault.
func (h *Handle) Retry() { h.informer.seen.pace.retry() }

// State returns how the source is doing.
func (h *Handle) State() State { return h.informer.seen.health.now() }

// Selects reports whether an object of that name with these labels would be in the cache. Of field
// selectors only those on metadata.name and metadata.namespace can be evaluated here; with any
// other the answer is no.
func (h *Handle) Selects(key cache.ObjectName, labels map[string]string) bool {
	return h.informer.scope.selects(key, labels)
}

// Lacks reports whether the cache would have an object of that name with these labels, and has none. The object may
// exist all the same: the cache may not show it yet. A nil handle covers nothing, so it lacks nothing.
func (h *Handle) Lacks(key cache.ObjectName, labels map[string]string) bool {
	if h == nil || !h.Synced() || !h.Selects(key, labels) {
		return false
	}
	_, found := h.Object(key)
	return !found
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// ledger delivers the events of an informer to the handler, and keeps the objects that the handler knows of. A closed informer drops
// its pending events, and its store no longer has the objects: without the ledger their deletions would be lost.
type ledger struct {
	handler watch.Handler

	// mu is held while the handler runs, so that the events of one object are delivered in order.
	mu      sync.Mutex
	present map[types.UID]*cached.Object
	// silent is true while events are recorded and not delivered; see follow.
	silent bool
}

func newLedger(on watch.Handler, silent bool) *ledger {
	return &ledger{handler: on, present: map[types.UID]*cached.Object{}, silent: silent}
}

// OnEvent records an event of the informer, and passes it on.
func (l *ledger) OnEvent(ev watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ev.Kind != watch.Deleted:
		l.present[ev.UID] = ev.Object
	case ev.UID == "": // the watch missed the deletion, and only the name is known
		maps.DeleteFunc(l.present, func(_ types.UID, o *cached.Object) bool { return cache.MetaObjectToName(o) == ev.Key })
	default:
		delete(l.present, ev.UID)
	}
	if !l.silent {
		l.handler.OnEvent(ev)
	}
}

// closeAsDeleted delivers the deletion of all remaining objects. The informer must be closed.
func (l *ledger) closeAsDeleted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.present {
		l.handler.OnEvent(deletion(o))
	}
	clear(l.present)
}

// follow continues the ledger of a closed informer with the same objects. It delivers the differences between the two, and all events
// from then on. Unchanged objects are delivered as initial ones, because the handler may see them in another form.
func (l *ledger) follow(before *ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = false
	for uid, o := range l.present {
		switch was := before.present[uid]; {
		case was == nil:
			l.handler.OnEvent(watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: uid, Object: o})
		case was.GetResourceVersion() != o.GetResourceVersion():
			l.handler.OnEvent(watch.Event{Kind: watch.Updated, Key: cache.MetaObjectToName(o), UID: uid, Object: o, Old: was})
		default:
			l.handler.OnEvent(watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: uid, Initial: true, Object: o})
		}
	}
	for uid, o := range before.present {
		if l.present[uid] == nil {
			l.handler.OnEvent(deletion(o))
		}
	}
}

// names reports whether the handler knows of an object of that name. It does not wait for an event that is being delivered, and
// returns true then, because the event may be about the object.
func (l *ledger) names(key cache.ObjectName) bool {
	if !l.mu.TryLock() {
		return true
	}
	defer l.mu.Unlock()
	for _, o := range l.present {
		if cache.MetaObjectToName(o) == key {
			return true
		}
	}
	return false
}

// deletion returns the event of a deletion that the watch missed.
func deletion(o *cached.Object) watch.Event {
	return watch.Event{Kind: watch.Deleted, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Unseen: true, Object: o}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"maps"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// ledger delivers the events of an informer to the handler, and keeps the objects that the handler knows of. A closed informer drops
// its pending events, and its store no longer has the objects: without the ledger their deletions would be lost.
type ledger struct {
	handler watch.Handler

	// delivery is held while the handler runs, so that the events of one object are delivered in order.
	delivery sync.Mutex
	// silent is true while events are recorded and not delivered; see follow. The delivery guards it.
	silent bool

	// mu guards the fields below. It is not held while the handler runs.
	mu sync.Mutex
	// present has at most one object of a name: a deletion comes before the next object of the name.
	present map[cache.ObjectName]*cached.Object
	// current is the object whose event is being delivered; empty once the handler has found whom it concerns.
	current cache.ObjectName
}

func newLedger(on watch.Handler, silent bool) *ledger {
	return &ledger{handler: on, present: map[cache.ObjectName]*cached.Object{}, silent: silent}
}

// OnEvent records an event of the informer, and passes it on.
func (l *ledger) OnEvent(ev watch.Event) {
	l.delivery.Lock()
	defer l.delivery.Unlock()
	l.deliver(ev)
}

// deliver records an event, and calls the handler unless the ledger is silent. The delivery is locked.
func (l *ledger) deliver(ev watch.Event) {
	l.mu.Lock()
	l.current = ev.Key
	if ev.Kind == watch.Deleted {
		delete(l.present, ev.Key)
	} else {
		l.present[ev.Key] = ev.Object
	}
	l.mu.Unlock()
	if !l.silent {
		l.handler.OnEvent(ev)
	}
	l.found(ev.Key)
}

// found records that the handler has found whom an event of an object concerns.
func (l *ledger) found(key cache.ObjectName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == key {
		l.current = cache.ObjectName{}
	}
}

// known returns a copy of the objects that the handler knows of.
func (l *ledger) known() map[cache.ObjectName]*cached.Object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.present)
}

// closeAsDeleted delivers the deletion of all remaining objects. The informer must be closed.
func (l *ledger) closeAsDeleted() {
	l.delivery.Lock()
	defer l.delivery.Unlock()
	for _, o := range l.known() {
		l.deliver(deletion(o))
	}
}

// follow continues the ledger of a closed informer with the same objects. It delivers the differences between the two, and all events
// from then on. Unchanged objects are delivered as initial ones, because the handler may see them in another form.
func (l *ledger) follow(before *ledger) {
	l.delivery.Lock()
	defer l.delivery.Unlock()
	l.silent = false
	now, earlier := l.known(), before.known()
	l.mu.Lock()
	for key, o := range earlier {
		if now[key] == nil {
			l.present[key] = o // until its deletion is delivered
		}
	}
	l.mu.Unlock()
	for key, o := range now {
		was := earlier[key]
		if was != nil && was.GetUID() != o.GetUID() {
			l.deliver(deletion(was))
			was = nil
		}
		switch {
		case was == nil:
			l.deliver(watch.Event{Kind: watch.Added, Key: key, UID: o.GetUID(), Object: o})
		case was.GetResourceVersion() != o.GetResourceVersion():
			l.deliver(watch.Event{Kind: watch.Updated, Key: key, UID: o.GetUID(), Object: o, Old: was})
		default:
			l.deliver(watch.Event{Kind: watch.Added, Key: key, UID: o.GetUID(), Initial: true, Object: o})
		}
	}
	for key, o := range earlier {
		if now[key] == nil {
			l.deliver(deletion(o))
		}
	}
}

// names reports whether the handler knows of an object of that name, or an event of such an object is being delivered. The
// delivery of events of other objects makes no difference: they do not make the caller look again.
func (l *ledger) names(key cache.ObjectName) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current == key || l.present[key] != nil
}

// deletion returns the event of a deletion that the watch missed.
func deletion(o *cached.Object) watch.Event {
	return watch.Event{Kind: watch.Deleted, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Unseen: true, Object: o}
}

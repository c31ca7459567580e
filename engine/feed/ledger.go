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

// ledger stands between an informer and those who are told of its events, and knows what they were
// told is there. An informer that is closed throws away the events that it has not told yet, and its
// store does not have the objects any more: without a ledger these deletions would be lost.
type ledger struct {
	on func(watch.Event)

	// mu is held while on runs, so that what is told of one object comes in order.
	mu      sync.Mutex
	present map[types.UID]*cached.Object
	// silent: events are noted and not told; see follow.
	silent bool
}

func newLedger(on func(watch.Event), silent bool) *ledger {
	return &ledger{on: on, present: map[types.UID]*cached.Object{}, silent: silent}
}

// take is the informer's callback.
func (l *ledger) take(ev watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ev.Kind != watch.Deleted:
		l.present[ev.UID] = ev.Object
	case ev.UID == "": // of one that nobody saw go, only the name may be known
		maps.DeleteFunc(l.present, func(_ types.UID, o *cached.Object) bool { return cache.MetaObjectToName(o) == ev.Key })
	default:
		delete(l.present, ev.UID)
	}
	if !l.silent {
		l.on(ev)
	}
}

// closeAsDeleted tells of the deletion of everything that is there still. The informer must be closed.
func (l *ledger) closeAsDeleted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.present {
		l.on(deletion(o))
	}
	clear(l.present)
}

// follow takes over from the ledger of an informer that showed the same objects before, and is
// closed: it tells what differs between what that one told and what there is, and all events from here
// on. What did not change is told as if it had been there when the owner came: who looks at it may
// see another form of it.
func (l *ledger) follow(before *ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = false
	for uid, o := range l.present {
		switch was := before.present[uid]; {
		case was == nil:
			l.on(watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: uid, Object: o})
		case was.GetResourceVersion() != o.GetResourceVersion():
			l.on(watch.Event{Kind: watch.Updated, Key: cache.MetaObjectToName(o), UID: uid, Object: o, Old: was})
		default:
			l.on(watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: uid, Initial: true, Object: o})
		}
	}
	for uid, o := range before.present {
		if l.present[uid] == nil {
			l.on(deletion(o))
		}
	}
}

// names reports whether an object of that name was told to be there, and not that it is gone. While
// something is being told, it may be that; nobody waits for the answer.
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

// deletion is the event of an object that nobody saw go.
func deletion(o *cached.Object) watch.Event {
	return watch.Event{Kind: watch.Deleted, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Unseen: true, Object: o}
}

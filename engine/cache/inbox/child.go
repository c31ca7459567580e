// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// lookPause is the time between two checks of the caches for own writes to children whose events have not come.
const lookPause = 2 * time.Second

// awaited is an own write to a child whose event has not come yet.
type awaited struct {
	Echo
	write Write
	// since is when the write was recorded, and next when the cache is checked for it.
	since, next time.Time
}

// follows reports whether the event of the write comes after an event with this state of the child. If a listing shows
// only a later state, it does not come.
func (a awaited) follows(o *cached.Object) bool {
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), a.write.Version)
	return err == nil && order < 0
}

// OnChildEvent handles an event of a child of the key's object. It ignores the children of the first listing, because the
// first reconcile sees them. It ignores an unknown owner, which does not exist or has its own first event yet to come.
// Idle is true if no handler looks at the changed fields: a ready owner is not woken then. Any other owner may wait for
// anything. While an own write to the child is awaited, no other event of the child is idle. A listing that shows both
// states as one is compared with the state before the write.
func (b *Inbox[M]) OnChildEvent(owner Key, ev watch.Event, idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.knownLocked(owner)
	if !known {
		return
	}
	defer s.rest()
	if b.queue == nil || ev.Initial || s.childEcho(ev) {
		return
	}
	written, awaits := s.echoes[ev.UID]
	_, queued := s.changed[ev.UID]
	if idle && !awaits && !queued && s.health == b.ready && s.unfinished.count == 0 {
		return
	}
	came := news{last: ev.Object, several: queued}
	if ev.Kind == watch.Deleted {
		came = news{}
	}
	if ev.Kind == watch.Deleted || !written.follows(ev.Object) {
		delete(s.echoes, ev.UID)
	}
	b.childNewsLocked(owner, s, ev.UID, came)
}

// childEcho reports whether an event is the echo of an own write to a child. If so, the write is no longer awaited.
func (s *state[M]) childEcho(ev watch.Event) bool {
	written, awaits := s.echoes[ev.UID]
	if !awaits || ev.Kind == watch.Deleted || !written.is(ev.Object) {
		return false
	}
	delete(s.echoes, ev.UID)
	if s.left != nil {
		s.left.shown(ev.UID, ev.Object.GetResourceVersion())
		s.settle()
	}
	return true
}

// Echo records an own write to a child, so that its event does not count as a change. The event may come later, or may
// have come before the answer to the request. If it does not come in time, the cache is checked for the write.
func (b *Inbox[M]) Echo(owner Key, w Write, e Echo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stateLocked(owner)
	now := time.Now()
	a := awaited{Echo: e, write: w.noted(), since: now, next: now.Add(lookPause)}
	switch seen, known := s.changed[w.UID]; {
	case known && seen.last == nil: // the child is gone
		return
	case known && e.is(seen.last):
		if !seen.several { // otherwise somebody else has written the child before
			delete(s.changed, w.UID)
		}
		return
	case known && !a.follows(seen.last): // a listing has shown only a later state
		return
	case w.Cache.Informer(w.Key.Namespace) == nil: // no event will come
		return
	}
	if s.echoes == nil {
		s.echoes = map[types.UID]awaited{}
	}
	s.echoes[w.UID] = a
	b.watchLocked(owner, a.next)
}

// ForgetEchoes forgets the versions of own writes whose events have not come. The API server's versions have gone back,
// so the writes of others may get the same ones. The caches are still checked for the written objects.
func (b *Inbox[M]) ForgetEchoes() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.keys {
		if s.pending == nil {
			continue
		}
		for uid, a := range s.echoes {
			a.Echo = Echo{}
			s.echoes[uid] = a
		}
		if s.left != nil {
			s.left.echoes = nil
			s.settle()
		}
	}
}

// childNewsLocked records that a child has changed, and queues its owner. During a turn, the owner is queued at its end:
// the event may be the echo of a write whose answer has not come yet. The lock is held.
func (b *Inbox[M]) childNewsLocked(owner Key, s *state[M], child types.UID, n news) {
	if s.changed == nil {
		s.changed = map[types.UID]news{}
	}
	s.changed[child] = n
	if s.phase == resting && b.queue != nil {
		b.queue.Add(owner, queue.Fresh)
	}
}

// lookLocked checks the caches for own writes to children whose events have not come. It queues the owner if a cache has
// a later state, or no object. A watch or a listing may show only that state, so the write has no event. It also queues
// the owner if a cache without a fault does not reach the write in time; the reconcile asks the server then. It returns
// the time of the next check; zero for never. The lock is held.
func (b *Inbox[M]) lookLocked(owner Key, s *state[M], now time.Time) (again time.Time) {
	for uid, a := range s.echoes {
		if a.next.After(now) {
			again = sooner(again, a.next)
			continue
		}
		shown := a.write.Shown()
		if !shown && (now.Sub(a.since) < Patience || !a.write.comes()) {
			a.next = now.Add(lookPause)
			s.echoes[uid] = a
			again = sooner(again, a.next)
			continue
		}
		delete(s.echoes, uid)
		if o := a.write.object(); !shown || o == nil || !a.is(o) {
			b.childNewsLocked(owner, s, uid, news{last: o})
		}
	}
	return again
}

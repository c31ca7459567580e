// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// Echo is a state of an object, or of a child, that a reconcile has written. After a restored backup, the API server may
// give the version to another write, so there is a digest, too; see [cached.Object.Digest].
type Echo struct {
	Version string
	Digest  uint64
}

// EchoOf returns the echo of a write, from the server's answer as a cache shows it.
func EchoOf(o *unstructured.Unstructured) Echo {
	return Echo{Version: o.GetResourceVersion(), Digest: cached.DigestOf(o)}
}

// is reports whether an object in a cache has this state.
func (e Echo) is(o *cached.Object) bool {
	return e.Version == o.GetResourceVersion() && e.Digest == o.Digest()
}

// left is the state in which the last reconcile left an idle object. It is kept until the caches show it.
type left struct {
	uid types.UID
	// echoes are the states of the object whose events have not come yet, in order.
	echoes []Echo
	// awaits are writes that the caches have to show before the next reconcile.
	awaits []Write
	// lookAt is when the key is queued if the echoes after the first have not come; zero before the first. A restored
	// backup may have the first write alone.
	lookAt time.Time
}

// shown removes the awaited writes to an object that an event with this version shows.
func (l *left) shown(uid types.UID, version string) {
	l.awaits = slices.DeleteFunc(l.awaits, func(w Write) bool { return w.UID == uid && w.Version == version && !w.Gone })
}

// lateMost is how many events of an object are put off while it is written. If there are more, others write, too.
const lateMost = 4

// BeginWrite records that a reconcile is about to write its object. Until its turn ends, a change of the object does not
// queue the key. The change may be the echo of the write, which comes before or after the answer.
func (b *Inbox[M]) BeginWrite(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.stateLocked(key); !s.came { // otherwise the key is queued already
		s.phase = s.phase.after(onWrite)
	}
}

// LeaveIdle records that the reconcile has left its object idle. The reconcile has looked at the answers to its writes as
// the next reconcile would look at the cache, and found nothing to do. The events of these writes, which are echoes,
// start no reconcile. The next reconcile waits for the writes that no event shows before.
func (t *Batch[M]) LeaveIdle(uid types.UID, echoes []Echo, writes *Writes) {
	b := t.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.stateLocked(t.key); s.phase == writing && len(s.late) <= lateMost {
		s.left = &left{uid: uid, echoes: echoes, awaits: writes.take()}
	}
}

// concerns records that a change of an object wakes the key. If it is the key's own object, its next event is not an
// echo.
func (s *state[M]) concerns(uid types.UID) {
	if uid == s.uid {
		s.phase = s.phase.after(onQueue)
	}
	if s.left != nil && uid == s.left.uid {
		s.left.echoes = nil
		s.settle()
	}
}

// putOff puts off an event of the object while a reconcile writes the object. It reports whether the object is being
// written.
func (s *state[M]) putOff(o *cached.Object) bool {
	if s.phase == writing && len(s.late) <= lateMost {
		s.late = append(s.late, o)
	}
	return s.phase == writing
}

// writtenLocked ends the time in which events are put off. If one of them is not an echo, the key is queued. The lock is
// held.
func (b *Inbox[M]) writtenLocked(key Key, s *state[M]) {
	late := s.late
	s.phase, s.late = s.phase.after(onEnd), nil
	if len(late) == 0 {
		return
	}
	for _, o := range late {
		if !b.echoLocked(key, s, o) {
			if b.queue != nil {
				b.queue.Add(key, queue.Fresh)
			}
			return
		}
	}
	s.came, s.Event = false, ""
}

// echoLocked reports whether the last reconcile has left an object in this state. It returns true once for each state.
// The lock is held.
func (b *Inbox[M]) echoLocked(key Key, s *state[M], o *cached.Object) bool {
	if s.left == nil || s.left.uid != o.GetUID() {
		return false
	}
	at := slices.IndexFunc(s.left.echoes, func(e Echo) bool { return e.is(o) })
	if at < 0 {
		return false
	}
	s.left.echoes = s.left.echoes[at+1:] // earlier states have no event: a listing has shown only this one
	s.left.shown(o.GetUID(), o.GetResourceVersion())
	if s.settle(); s.left != nil && len(s.left.echoes) > 0 {
		s.left.lookAt = time.Now().Add(Patience)
		b.watchLocked(key, s.left.lookAt)
	}
	b.owner.Echoed(key, o)
	return true
}

// missingLocked queues a key whose echoes have not all come in time. It returns when that is due; zero for never. The
// lock is held.
func (b *Inbox[M]) missingLocked(key Key, s *state[M], now time.Time) (next time.Time) {
	switch {
	case s.left == nil || s.left.lookAt.IsZero():
		return time.Time{}
	case s.left.lookAt.After(now):
		return s.left.lookAt
	}
	s.left.lookAt = time.Time{}
	b.queue.Add(key, queue.Due)
	return time.Time{}
}

// settle drops left when the caches have shown all of it.
func (s *state[M]) settle() {
	if s.left != nil && len(s.left.echoes)+len(s.left.awaits) == 0 {
		s.left = nil
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// Batch has the changes that one reconcile has taken for its key. It must be closed. A key has one batch at a time.
type Batch[M any] struct {
	Changes
	// UID identifies the newest object under the key; empty if no event had it.
	UID types.UID
	// Memory is the process's state of the object; nil before its first reconcile. The reconcile replaces it, and
	// [Batch.Close] stores it.
	Memory *M
	// Expected are writes to the object by reconciles over other objects.
	Expected []Write
	// Awaited are writes by earlier reconciles over the object; the caches must show them first.
	Awaited []Write
	// Gone has the deleted objects of the key, the oldest first. Unfinalized has the ones that are not finalized yet. The
	// reconcile does not change Gone: events of children find their owners in it.
	Gone, Unfinalized []*Tombstone[M]

	inbox *Inbox[M]
	key   Key
	// waits is true if the key was put aside before, and may still be.
	waits bool
	// stored: Unfinalized is stored already.
	stored, handled bool
	// failed describes the failed reconciles before this one.
	failed unfinished
}

// Take moves the changes of a key into a batch for a reconcile.
func (b *Inbox[M]) Take(key Key) *Batch[M] {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stateLocked(key)
	s.gather()
	t := &Batch[M]{Changes: s.Changes, UID: s.uid, Memory: s.memory, Expected: s.expected, Gone: together(s.gone), inbox: b, key: key, waits: !s.aside.IsZero()}
	t.Fresh, t.Child = s.fresh, s.Child || len(s.changed) > 0
	if s.left != nil {
		t.Awaited, s.left = s.left.awaits, nil
	}
	s.Changes = Changes{}
	s.came, s.parked, s.changed, s.expected, s.gone = false, false, nil, nil, nil
	s.turn, s.phase, t.failed = t, s.phase.after(onTake), s.unfinished
	return t
}

// together merges the tombstones of one object: a listing may miss it first, and the watch shows the deletion later.
func together[M any](all []*Tombstone[M]) (out []*Tombstone[M]) {
	for _, d := range all {
		uid := d.Object.GetUID()
		i := slices.IndexFunc(out, func(o *Tombstone[M]) bool { return uid != "" && o.Object.GetUID() == uid })
		if i < 0 {
			out = append(out, d)
			continue
		}
		out[i].Unseen = out[i].Unseen && d.Unseen
	}
	return out
}

// Replaced records that another object has the key than in the last reconcile: no reconcile has judged it yet.
func (t *Batch[M]) Replaced() {
	defer t.inbox.lines.flush()
	t.inbox.mu.Lock()
	defer t.inbox.mu.Unlock()
	t.failed = unfinished{}
	t.inbox.setHealthLocked(t.key, t.inbox.stateLocked(t.key), ops.ObjectHealth{})
}

// Forget drops the state of a key that has no object. If something came during the reconcile, the state stays. Another
// object has the key then, and the next reconcile must see that it is new. Forget reports whether the state was dropped.
func (t *Batch[M]) Forget() (all bool) {
	t.handled, t.Memory = true, nil
	b := t.inbox
	defer b.lines.flush()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stateLocked(t.key)
	b.setHealthLocked(t.key, s, ops.ObjectHealth{})
	t.storeLocked(s)
	t.unparkLocked(s)
	b.restedLocked(t.key, s)
	if len(s.gone) > 0 || s.Child || len(s.changed) > 0 || s.came {
		return false
	}
	delete(b.keys, t.key)
	b.refused.drop(t.key)
	return true
}

// storeLocked stores the memory, and once the tombstones that are left. The lock is held.
func (t *Batch[M]) storeLocked(s *state[M]) {
	s.memory = t.Memory
	if !t.stored {
		s.gone, t.stored = append(t.Unfinalized, s.gone...), true
	}
}

// Failed counts a reconcile that ended with an error, also if one of its objects has a new health. It returns how many
// reconciles in a row failed before it.
func (t *Batch[M]) Failed(err error) (before int) {
	t.inbox.mu.Lock()
	defer t.inbox.mu.Unlock()
	now := t.failed
	if now.count == 0 {
		now.since = time.Now()
	}
	now.count++
	now.err = short(why.Plainly(err.Error()))
	t.inbox.stateLocked(t.key).unfinished = now
	return now.count - 1
}

// Handled records that the reconcile has dealt with the changes.
func (t *Batch[M]) Handled() { t.handled = true }

// Close stores the memory and the tombstones that are left. It returns the changes to the inbox for the next reconcile,
// unless they were handled. It stores nothing if the key was forgotten, or if another term has begun.
func (t *Batch[M]) Close() {
	t.inbox.mu.Lock()
	defer t.inbox.mu.Unlock()
	s, known := t.inbox.knownLocked(t.key)
	if !known {
		return
	}
	defer s.rest()
	if s.turn != t {
		return
	}
	t.storeLocked(s)
	t.endLocked(s)
	if t.handled {
		return
	}
	s.Child = s.Child || t.Child
	if s.Event != apiwatch.Added { // the new event is of another object
		s.Event = cmp.Or(t.Event, s.Event)
	}
	s.Granted = append(s.Granted, t.Granted...)
	newer := s.Woken
	s.Woken = t.Woken
	s.woken(newer...)
	if t.Related != nil {
		s.Related = &Related{All: true}
	}
}

// endLocked ends the turn. It queues the key for events during the turn that are not echoes of the reconcile's own
// writes. The lock is held.
func (t *Batch[M]) endLocked(s *state[M]) {
	t.inbox.writtenLocked(t.key, s)
	if s.turn = nil; len(s.changed) > 0 && t.inbox.queue != nil {
		t.inbox.queue.Add(t.key, queue.Fresh)
	}
}

// Park puts the key aside until an event of an object that it waits for. It returns false if the cache has caught up
// meanwhile.
func (t *Batch[M]) Park(w *Writes) bool {
	b := t.inbox
	defer b.lines.flush()
	b.mu.Lock()
	s := b.stateLocked(t.key)
	s.parked = true
	for _, uid := range w.park() {
		if !slices.Contains(b.waiting[uid], t.key) {
			b.waiting[uid] = append(b.waiting[uid], t.key)
			s.waits, t.waits = append(s.waits, uid), true
		}
		b.asideLocked(t.key, s, cacheBehind)
	}
	b.mu.Unlock()
	if w.Shown() {
		t.Unpark()
		return false
	}
	return true
}

// Unpark ends the wait of a key. Not every object has an event that would do so.
func (t *Batch[M]) Unpark() {
	if !t.waits {
		return
	}
	defer t.inbox.lines.flush()
	t.inbox.mu.Lock()
	defer t.inbox.mu.Unlock()
	t.unparkLocked(t.inbox.stateLocked(t.key))
}

func (t *Batch[M]) unparkLocked(s *state[M]) {
	for _, uid := range s.waits {
		b := t.inbox
		if left := slices.DeleteFunc(b.waiting[uid], func(k Key) bool { return k == t.key }); len(left) > 0 {
			b.waiting[uid] = left
		} else {
			delete(b.waiting, uid)
		}
	}
	s.waits = nil
	t.inbox.backLocked(t.key, s)
}

// WaitForMemory puts the key aside, because other reconciles hold the memory that its reconcile needs. The key is not
// parked: it is queued when there is enough.
func (t *Batch[M]) WaitForMemory() {
	defer t.inbox.lines.flush()
	t.inbox.mu.Lock()
	defer t.inbox.mu.Unlock()
	t.inbox.asideLocked(t.key, t.inbox.stateLocked(t.key), memoryShort)
}

// Wake queues the keys that wait for an object. Keys that have to wait longer park again.
func (b *Inbox[M]) Wake(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wakeLocked(uid)
}

// WakeAll queues every parked key, so that a worker checks whether it still has to wait.
func (b *Inbox[M]) WakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid := range b.waiting {
		b.wakeLocked(uid)
	}
}

// wakeLocked is Wake with the lock held.
func (b *Inbox[M]) wakeLocked(uid types.UID) {
	if b.queue == nil {
		return
	}
	for _, key := range b.waiting[uid] {
		b.queue.Add(key, queue.Fresh)
	}
	delete(b.waiting, uid)
}

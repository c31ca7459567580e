// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Batch has the changes that one reconcile has taken for its key. It must be closed. A key has one batch at a time.
type Batch[M any] struct {
	Changes
	// Memory is the process's state of the object; nil before its first reconcile.
	Memory *M
	// Expected are writes to the object by reconciles over others.
	Expected []Write
	// Awaited are writes by earlier reconciles over the object; the caches must show them first.
	Awaited []Write
	// Gone has the deleted objects of the key, the oldest first. Left has the ones that are not finalized yet. The reconcile leaves Gone as it is: events of children find their owners in it.
	Gone, Left []*Tombstone[M]

	box *Inbox[M]
	key Key
	// waits: the key was put aside before, and may be so still.
	waits         bool
	kept, handled bool
}

// Take hands what has come up for a key to a reconcile.
func (b *Inbox[M]) Take(key Key) *Batch[M] {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stateLocked(key)
	s.gather()
	t := &Batch[M]{Changes: s.Changes, Memory: s.memory, Expected: s.expected, Gone: together(s.gone), box: b, key: key, waits: !s.aside.IsZero()}
	t.Fresh, t.Child = s.fresh, s.Child || len(s.changed) > 0
	if s.left != nil {
		t.Awaited, s.left = s.left.awaits, nil
	}
	s.Changes = Changes{}
	s.came, s.parked, s.changed, s.expected, s.gone = false, false, nil, nil, nil
	s.turn, s.phase = t, s.phase.after(onTake)
	return t
}

// together makes one of those that are of one object: first a listing did not have it, and then it was
// seen to go.
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

// Keep has an object remembered from here on, and what is left of the tombstones.
func (t *Batch[M]) Keep(memory *M) {
	defer t.box.lines.flush()
	t.box.mu.Lock()
	defer t.box.mu.Unlock()
	t.keepLocked(memory)
}

func (t *Batch[M]) keepLocked(memory *M) *state[M] {
	t.kept = true
	s := t.box.stateLocked(t.key)
	s.gone = append(t.Left, s.gone...)
	if s.memory != memory {
		t.box.standLocked(t.key, s, ops.Stand{})
	}
	s.memory = memory
	return s
}

// Forget is Keep for a key that has no object any more: what is known of it goes. It stays when something came
// while the reconcile looked, for then another object has the key, and the next reconcile must learn that it is a new
// one. It reports whether all has gone.
func (t *Batch[M]) Forget() (all bool) {
	t.handled = true
	b := t.box
	defer b.lines.flush()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := t.keepLocked(nil)
	t.unparkLocked(s)
	b.restedLocked(t.key, s)
	if len(s.gone) > 0 || s.Child || len(s.changed) > 0 || s.came {
		return false
	}
	delete(b.keys, t.key)
	b.refused.drop(t.key)
	return true
}

// Handled says that the reconcile has dealt with the changes.
func (t *Batch[M]) Handled() { t.handled = true }

// Close keeps what is remembered and left, unless that is done, and puts the changes back for the next reconcile, unless
// they were handled.
func (t *Batch[M]) Close() {
	t.box.mu.Lock()
	defer t.box.mu.Unlock()
	if !t.kept {
		t.keepLocked(t.Memory)
	}
	if t.handled {
		if s, known := t.box.knownLocked(t.key); known {
			t.endLocked(s)
			s.rest()
		}
		return
	}
	s := t.box.stateLocked(t.key)
	t.endLocked(s)
	defer s.rest()
	s.Child = s.Child || t.Child
	if s.Event != apiwatch.Added { // that is of another object
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

// endLocked queues the key for what came during the turn and is no echo of the reconcile's own writes. The lock is held.
func (t *Batch[M]) endLocked(s *state[M]) {
	t.box.writtenLocked(t.key, s)
	if s.turn = nil; len(s.changed) > 0 && t.box.queue != nil {
		t.box.queue.Add(t.key, queue.Fresh)
	}
}

// Park puts the key aside until an event of an object that it waits for. It reports false when the cache has
// caught up meanwhile, before there was somebody to wake.
func (t *Batch[M]) Park(w *Writes) bool {
	b := t.box
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

// Unpark forgets what the key was put aside for: not every object has an event that would do so.
func (t *Batch[M]) Unpark() {
	if !t.waits {
		return
	}
	defer t.box.lines.flush()
	t.box.mu.Lock()
	defer t.box.mu.Unlock()
	t.unparkLocked(t.box.stateLocked(t.key))
}

func (t *Batch[M]) unparkLocked(s *state[M]) {
	for _, uid := range s.waits {
		b := t.box
		if left := slices.DeleteFunc(b.waiting[uid], func(k Key) bool { return k == t.key }); len(left) > 0 {
			b.waiting[uid] = left
		} else {
			delete(b.waiting, uid)
		}
	}
	s.waits = nil
	t.box.backLocked(t.key, s)
}

// Short says that no reconcile begins, since others hold the memory that it takes. The key is not parked: it is queued when there is enough.
func (t *Batch[M]) Short() {
	defer t.box.lines.flush()
	t.box.mu.Lock()
	defer t.box.mu.Unlock()
	t.box.asideLocked(t.key, t.box.stateLocked(t.key), memoryShort)
}

// Wake brings back the keys that wait for an object. Those for which this was not the event park again.
func (b *Inbox[M]) Wake(uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wakeLocked(uid)
}

// WakeAll brings back every key that is parked, to look whether it still must be.
func (b *Inbox[M]) WakeAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid := range b.waiting {
		b.wakeLocked(uid)
	}
}

// wakeLocked is Wake for those who hold the lock.
func (b *Inbox[M]) wakeLocked(uid types.UID) {
	if b.queue == nil {
		return
	}
	for _, key := range b.waiting[uid] {
		b.queue.Add(key, queue.Fresh)
	}
	delete(b.waiting, uid)
}

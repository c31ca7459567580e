// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Status has the state of an object in the inbox, without its changes.
type Status struct {
	// Health is the health of the object; empty before its first reconcile. Since is when it began, and Open has the
	// reasons why the object is not ready.
	Health ops.Health
	Since  time.Time
	Open   []ops.Open
	// Parked is since when the key waits for the cache. Suspended is until when the object is held back because it
	// loops. Each is zero if that is not so.
	Parked, Suspended time.Time
	// Unfinished counts the failed reconciles in a row, and Problem is the error of the last one.
	Unfinished int
	Problem    string
}

// Status returns the status of a key. Known is false outside of a term, and before an event or a reconcile of the key.
func (b *Inbox[M]) Status(key Key) (p Status, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.keys[key]
	if s == nil {
		return p, false
	}
	p.Health, p.Since = s.currentHealth()
	p.Open = s.reasons(p.Health)
	if s.pending != nil {
		if p.Suspended = s.suspended; s.asideFor == cacheBehind {
			p.Parked = s.aside
		}
		p.Unfinished, p.Problem = s.unfinished.count, s.unfinished.err
	}
	return p, true
}

// Peek returns the batch that Take would return, without deleted objects. All changes stay for the next reconcile, so
// the batch must not be closed. Only the worker that has the key may call it.
func (b *Inbox[M]) Peek(key Key) *Batch[M] {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, s := &Batch[M]{inbox: b, key: key}, b.keys[key]
	if s == nil {
		return t
	}
	t.UID, t.Memory = s.uid, s.memory
	if s.pending != nil {
		t.Changes, t.Expected = s.Changes, slices.Clone(s.expected)
		t.Child = s.Child || len(s.changed) > 0
		if s.left != nil {
			t.Awaited = slices.Clone(s.left.awaits)
		}
	}
	if t.Related != nil {
		t.Related = &Related{All: t.Related.All, Changes: slices.Clone(t.Related.Changes)}
	}
	t.Fresh = s.fresh
	return t
}

// EnqueueFirst queues a key before all others, because somebody asks about its object. It reports whether the process leads.
func (b *Inbox[M]) EnqueueFirst(key Key) (leads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil {
		return false
	}
	b.queue.Add(key, queue.Asked)
	return true
}

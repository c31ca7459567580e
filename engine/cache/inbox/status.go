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
	// Standing is how the object stands, since when, and Open why it is not ready; empty before its first reconcile.
	Standing ops.Standing
	Since    time.Time
	Open     []ops.Open
	// Parked is since when the key waits for the cache, and Suspended until when the object is held back because it loops; zero
	// where that is not so.
	Parked, Suspended time.Time
	// Unfinished counts the reconciles in a row that could not be finished, and Problem is the error of the last one.
	Unfinished int
	Problem    string
}

// Status returns what is known of a key. It is not known outside of a term, and where no event or pass has brought it.
func (b *Inbox[M]) Status(key Key) (p Status, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.keys[key]
	if s == nil {
		return p, false
	}
	p.Standing, p.Since = s.standing()
	p.Open = s.reasons(p.Standing)
	if s.pending != nil {
		if p.Suspended = s.suspended; s.asideFor == cacheBehind {
			p.Parked = s.aside
		}
		p.Unfinished, p.Problem = s.unfinished.count, s.unfinished.err
	}
	return p, true
}

// Remembered returns the state of a key's object, nil before its first reconcile, the writes that its next reconcile waits for, and
// the changes since the last reconcile. All stay for the next reconcile. Only the worker that has the key may call it.
func (b *Inbox[M]) Remembered(key Key) (memory *M, awaited []Write, came Changes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.keys[key]
	if s == nil {
		return nil, nil, came
	}
	if s.pending != nil {
		if came = s.Changes; s.left != nil {
			awaited = slices.Clone(s.left.awaits)
		}
		came.Child = s.Child || len(s.changed) > 0
	}
	if came.Related != nil {
		came.Related = &Related{All: came.Related.All, Changes: slices.Clone(came.Related.Changes)}
	}
	came.Fresh = s.fresh
	return s.memory, awaited, came
}

// Ask has a key looked at before all others, because somebody asks about its object. It reports whether the process leads.
func (b *Inbox[M]) Ask(key Key) (leads bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil {
		return false
	}
	b.queue.Add(key, queue.Asked)
	return true
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

const (
	// logAfter is how long a handler waits before the log says so.
	logAfter = 10 * time.Second
	// pauseMost is the longest pause between two log lines about a wait whose reason changes; the pauses double.
	pauseMost = time.Hour
	// checkPause is the shortest time between two checks for waits that are due for the log.
	checkPause = time.Second
)

// Wait is a wait for the log.
type Wait struct {
	Key Key
	// Open says which handler waits, and for what.
	ops.Open
	// Lasted is how long it has lasted when it is over, and Over that it is.
	Lasted time.Duration
	Over   bool
}

// open is what a handler of an object has not finished.
type open struct {
	ops.Open
	// since is when it began to wait, or to fail; changed when its reason was another one.
	since, changed time.Time
	// logged is the reason that was logged last, at a time; empty where none was. Pause is how long the log is quiet then.
	logged string
	at     time.Time
	pause  time.Duration
}

// due is when the wait is to be logged, zero for never.
func (o *open) due() time.Time {
	switch {
	case o.Standing != ops.Waits || o.Logged || o.logged == o.Reason:
		return time.Time{}
	case o.logged == "":
		return o.since.Add(logAfter)
	}
	first, next := o.changed.Add(logAfter), o.at.Add(o.pause)
	if first.Before(next) {
		return next
	}
	return first
}

// find returns what a handler waits for, or fails with; nil for nothing.
func (s *stand) find(handler string, how ops.Standing) *open {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.open, func(o open) bool { return o.Handler == handler && o.Standing == how })
	if i < 0 {
		return nil
	}
	return &s.open[i]
}

// openLocked returns the standing of an object with open handlers: what was open before goes on. The lock is held.
func (b *Inbox[M]) openLocked(key Key, before *stand, how ops.Stand) *stand {
	now := time.Now()
	out := &stand{how: how.Standing, since: now, open: make([]open, 0, len(how.Open))}
	for _, o := range how.Open {
		next := open{Open: o, since: now, changed: now}
		if was := before.find(o.Handler, o.Standing); was != nil {
			next = *was
			if next.Reason != o.Reason {
				next.changed = now
			} else {
				o.Logged = o.Logged || was.Logged
			}
			next.Open = o
		}
		out.open = append(out.open, next)
		if at := next.due(); !at.IsZero() {
			b.watchLocked(key, at)
		}
	}
	return out
}

// endedLocked has the end of waits logged. The lock is held.
func (b *Inbox[M]) endedLocked(key Key, before, now *stand) {
	for _, o := range before.open {
		if o.logged != "" && now.find(o.Handler, ops.Waits) == nil {
			o.Reason = o.logged
			b.lines.add(Wait{Key: key, Open: o.Open, Lasted: time.Since(o.since), Over: true})
		}
	}
}

// shortage is what a key is put aside for.
type shortage uint8

// cacheBehind is the wait of a parked key, memoryShort that of one whose reconcile takes memory that others hold.
const (
	cacheBehind shortage = iota + 1
	memoryShort
)

// String says it in the log.
func (s shortage) String() string {
	if s == memoryShort {
		return why.MemoryShort.Brief("")
	}
	return why.CacheBehind.Brief("")
}

// loops is what an object does that is held back for it.
const loops = "looping"

// loopOver is how long after the last time at which an object was held back it counts as at rest. The probe of the
// next minute has come to nothing then.
const loopOver = 2 * time.Minute

// asideLocked notes what a key is put aside for, so that the log says so if it lasts. The lock is held.
func (b *Inbox[M]) asideLocked(key Key, s *state[M], reason shortage) {
	if s.asideFor == reason {
		return
	}
	b.backLocked(key, s)
	s.aside, s.asideFor = time.Now(), reason
	b.watchLocked(key, s.aside.Add(logAfter))
}

// backLocked ends that. The lock is held.
func (b *Inbox[M]) backLocked(key Key, s *state[M]) {
	if s.asideLogged {
		b.overLocked(key, s.asideFor.String(), s.aside)
	}
	s.aside, s.asideFor, s.asideLogged = time.Time{}, 0, false
}

// watchLocked has the waits of a key checked at this time at the latest. The lock is held.
func (b *Inbox[M]) watchLocked(key Key, at time.Time) {
	if b.queue != nil {
		b.unlogged[key] = true
		b.checkLocked(at)
	}
}

// overLocked has the end of a wait logged that is not a handler's. The lock is held.
func (b *Inbox[M]) overLocked(key Key, reason string, since time.Time) {
	b.lines.add(Wait{Key: key, Open: ops.Open{Standing: ops.Waits, Reason: reason}, Lasted: time.Since(since), Over: true})
}

// checkLocked has waits checked at this time at the latest. The lock is held.
func (b *Inbox[M]) checkLocked(at time.Time) {
	switch {
	case b.timer == nil:
		b.timer = time.AfterFunc(time.Until(at), b.checkWaits)
	case at.Before(b.checkAt):
		b.timer.Reset(time.Until(at))
	default:
		return
	}
	b.checkAt = at
}

// checkWaits has the waits logged that have lasted.
func (b *Inbox[M]) checkWaits() {
	defer b.lines.flush()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil {
		return // the term is over
	}
	b.timer = nil
	now, next := time.Now(), time.Time{}
	for key := range b.unlogged {
		rest := b.dueLocked(key, now)
		if rest.IsZero() {
			delete(b.unlogged, key)
		} else if next.IsZero() || rest.Before(next) {
			next = rest
		}
	}
	if soon := now.Add(checkPause); !next.IsZero() && next.Before(soon) {
		next = soon
	}
	if !next.IsZero() {
		b.checkLocked(next)
	}
}

// dueLocked has the waits of a key logged that are due, and returns when the next one is due; zero for none. The lock is held.
func (b *Inbox[M]) dueLocked(key Key, now time.Time) (next time.Time) {
	s := b.keys[key]
	if s == nil {
		return next
	}
	if s.pending != nil {
		next = b.heldLocked(key, s, now)
		s.rest()
	}
	if s.stand == nil {
		return next
	}
	for i := range s.stand.open {
		o := &s.stand.open[i]
		at := o.due()
		switch {
		case at.IsZero():
		case !at.After(now):
			o.logged, o.at, o.pause = o.Reason, now, min(max(2*o.pause, logAfter), pauseMost)
			b.lines.add(Wait{Key: key, Open: o.Open})
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return next
}

// heldLocked has it logged that a key is put aside for long, or that its object does not loop any more, and has it queued when its echoes
// do not come. It returns when one of that is due next; zero for never. The lock is held.
func (b *Inbox[M]) heldLocked(key Key, s *state[M], now time.Time) (next time.Time) {
	next = b.missingLocked(key, s, now)
	if at := b.lookLocked(key, s, now); !at.IsZero() {
		next = sooner(next, at)
	}
	if !s.aside.IsZero() && !s.asideLogged {
		if at := s.aside.Add(logAfter); at.After(now) {
			next = sooner(next, at)
		} else {
			s.asideLogged = true
			b.lines.add(Wait{Key: key, Open: ops.Open{Standing: ops.Waits, Reason: s.asideFor.String()}})
		}
	}
	if s.looping.IsZero() {
		return next
	}
	over := s.loopSeen.Add(loopOver)
	if !over.After(now) {
		b.restedLocked(key, s)
		return next
	}
	return sooner(next, over)
}

// sooner returns the earlier one of two times; zero stands for never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// restedLocked notes that the object of a key does not loop. The lock is held.
func (b *Inbox[M]) restedLocked(key Key, s *state[M]) {
	if !s.looping.IsZero() {
		b.overLocked(key, loops, s.looping)
	}
	s.suspended, s.looping, s.loopSeen = time.Time{}, time.Time{}, time.Time{}
}

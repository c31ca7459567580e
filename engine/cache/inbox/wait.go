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
	// logAfter is how long a handler waits before the log has the wait.
	logAfter = 10 * time.Second
	// pauseMost is the longest pause between two log lines about a wait whose reason changes; the pauses double.
	pauseMost = time.Hour
	// checkPause is the shortest time between two checks for waits to log.
	checkPause = time.Second
)

// Wait is a wait to be logged.
type Wait struct {
	Key Key
	// Open says which handler waits, and for what.
	ops.Open
	// Over is true if the wait is over. Lasted is how long it lasted then.
	Lasted time.Duration
	Over   bool
}

// open is an unfinished handler of an object.
type open struct {
	ops.Open
	// since is when it began to wait, or to fail. Changed is when its reason last changed.
	since, changed time.Time
	// logged is the last logged reason, empty for none, and at is when it was logged. Pause is the least time until the
	// next line.
	logged string
	at     time.Time
	pause  time.Duration
}

// due returns when the wait has to be logged; zero for never.
func (o *open) due() time.Time {
	switch {
	case o.Health != ops.Waits || o.Logged || o.logged == o.Reason:
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

// find returns the open entry of a handler with this health. It returns nil if the handler has no such entry.
func (s *objectHealth) find(handler string, how ops.Health) *open {
	if s == nil {
		return nil
	}
	i := slices.IndexFunc(s.open, func(o open) bool { return o.Handler == handler && o.Health == how })
	if i < 0 {
		return nil
	}
	return &s.open[i]
}

// openLocked returns the health of an object with open handlers. Handlers that were open before keep their times. The
// lock is held.
func (b *Inbox[M]) openLocked(key Key, before *objectHealth, how ops.ObjectHealth) *objectHealth {
	now := time.Now()
	out := &objectHealth{how: how.Health, since: now, open: make([]open, 0, len(how.Open))}
	for _, o := range how.Open {
		next := open{Open: o, since: now, changed: now}
		if was := before.find(o.Handler, o.Health); was != nil {
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

// endedLocked queues log lines for waits that have ended. The lock is held.
func (b *Inbox[M]) endedLocked(key Key, before, now *objectHealth) {
	for _, o := range before.open {
		if o.logged != "" && now.find(o.Handler, ops.Waits) == nil {
			o.Reason = o.logged
			b.lines.add(Wait{Key: key, Open: o.Open, Lasted: time.Since(o.since), Over: true})
		}
	}
}

// shortage is the reason why a key is put aside.
type shortage uint8

// cacheBehind is the wait of a parked key. MemoryShort is the wait of a key whose reconcile needs memory that other
// reconciles hold.
const (
	cacheBehind shortage = iota + 1
	memoryShort
)

// String returns the reason for the log.
func (s shortage) String() string {
	if s == memoryShort {
		return why.MemoryShort.Brief("")
	}
	return why.CacheBehind.Brief("")
}

// loops is the logged reason of an object that is held back because it loops.
const loops = "looping"

// loopOver is how long after it was last held back an object counts as at rest. The probe of the next minute has found
// no loop by then.
const loopOver = 2 * time.Minute

// asideLocked records why a key is put aside, so that a long wait is logged. The lock is held.
func (b *Inbox[M]) asideLocked(key Key, s *state[M], reason shortage) {
	if s.asideFor == reason {
		return
	}
	b.backLocked(key, s)
	s.aside, s.asideFor = time.Now(), reason
	b.watchLocked(key, s.aside.Add(logAfter))
}

// backLocked ends the wait that asideLocked began. The lock is held.
func (b *Inbox[M]) backLocked(key Key, s *state[M]) {
	if s.asideLogged {
		b.overLocked(key, s.asideFor.String(), s.aside)
	}
	s.aside, s.asideFor, s.asideLogged = time.Time{}, 0, false
}

// watchLocked schedules a check of a key's waits, at this time at the latest. The lock is held.
func (b *Inbox[M]) watchLocked(key Key, at time.Time) {
	if b.queue != nil {
		b.unlogged[key] = true
		b.checkLocked(at)
	}
}

// overLocked queues a log line for the end of a wait that is not a handler's. The lock is held.
func (b *Inbox[M]) overLocked(key Key, reason string, since time.Time) {
	b.lines.add(Wait{Key: key, Open: ops.Open{Health: ops.Waits, Reason: reason}, Lasted: time.Since(since), Over: true})
}

// checkLocked schedules a check of all waits, at this time at the latest. The lock is held.
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

// checkWaits logs the waits that have lasted long enough.
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

// dueLocked queues log lines for the waits of a key that are due. It returns when the next one is due; zero for never.
// The lock is held.
func (b *Inbox[M]) dueLocked(key Key, now time.Time) (next time.Time) {
	s := b.keys[key]
	if s == nil {
		return next
	}
	if s.pending != nil {
		next = b.heldLocked(key, s, now)
		s.rest()
	}
	if s.health == nil {
		return next
	}
	for i := range s.health.open {
		o := &s.health.open[i]
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

// heldLocked checks the deadlines of a key that is not at rest. It queues the key if its echoes do not come, logs a key
// that is put aside for long, and ends a loop. It returns when the next of these is due; zero for never. The lock is
// held.
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
			b.lines.add(Wait{Key: key, Open: ops.Open{Health: ops.Waits, Reason: s.asideFor.String()}})
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

// restedLocked records that the object of a key has stopped looping. The lock is held.
func (b *Inbox[M]) restedLocked(key Key, s *state[M]) {
	if !s.looping.IsZero() {
		b.overLocked(key, loops, s.looping)
	}
	s.suspended, s.looping, s.loopSeen = time.Time{}, time.Time{}, time.Time{}
}

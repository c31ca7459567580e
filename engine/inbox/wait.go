// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/engine/ops"
)

const (
	// waitTold is how long a handler has waited when people are told of it.
	waitTold = 10 * time.Second
	// pauseMost is the longest pause between two lines about a wait that changes what it waits for; the pauses double.
	pauseMost = time.Hour
	// lookPause is the shortest time between two looks for waits that are to be told.
	lookPause = time.Second
)

// Wait is a wait of which people are told.
type Wait struct {
	Key Key
	// Open says which handler waits, and for what.
	ops.Open
	// Lasted is how long it has lasted when it is over, and Over that it is.
	Lasted time.Duration
	Over   bool
}

// open is what a handler of an object is not through with.
type open struct {
	ops.Open
	// since is when it began to wait, or to fail; changed when its reason was another one.
	since, changed time.Time
	// told is what people were told last, at a time; empty where they were not. Pause is how long they are not told then.
	told  string
	at    time.Time
	pause time.Duration
}

// due is when people are to be told, zero for never.
func (o *open) due() time.Time {
	switch {
	case o.Standing != ops.Waits || o.Told || o.told == o.Reason:
		return time.Time{}
	case o.told == "":
		return o.since.Add(waitTold)
	}
	first, next := o.changed.Add(waitTold), o.at.Add(o.pause)
	if first.Before(next) {
		return next
	}
	return first
}

// find returns what a handler of an object waits for, or fails with; nil for nothing.
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

// openLocked returns how an object stands of which something is open: what was so before goes on. The lock is held.
func (b *Box[M]) openLocked(key Key, before *stand, how ops.Stand) *stand {
	now := time.Now()
	out := &stand{how: how.Standing, since: now, open: make([]open, 0, len(how.Open))}
	for _, o := range how.Open {
		next := open{Open: o, since: now, changed: now}
		if was := before.find(o.Handler, o.Standing); was != nil {
			next = *was
			if next.Reason != o.Reason {
				next.changed = now
			} else {
				o.Told = o.Told || was.Told
			}
			next.Open = o
		}
		out.open = append(out.open, next)
		if at := next.due(); !at.IsZero() && b.queue != nil {
			b.untold[key] = true
			b.lookLocked(at)
		}
	}
	return out
}

// endedLocked has people told that waits are over. The lock is held.
func (b *Box[M]) endedLocked(key Key, before, now *stand) {
	for _, o := range before.open {
		if o.told != "" && now.find(o.Handler, ops.Waits) == nil {
			o.Reason = o.told
			b.sayLocked(Wait{Key: key, Open: o.Open, Lasted: time.Since(o.since), Over: true})
		}
	}
}

// lookLocked has waits looked at, at this time at the latest. The lock is held.
func (b *Box[M]) lookLocked(at time.Time) {
	switch {
	case b.timer == nil:
		b.timer = time.AfterFunc(time.Until(at), b.lookForWaits)
	case at.Before(b.looks):
		b.timer.Reset(time.Until(at))
	default:
		return
	}
	b.looks = at
}

// lookForWaits has people told of the waits that have lasted.
func (b *Box[M]) lookForWaits() {
	defer b.tell()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer == nil {
		return // the term is over
	}
	b.timer = nil
	now, next := time.Now(), time.Time{}
	for key := range b.untold {
		rest := b.dueLocked(key, now)
		if rest.IsZero() {
			delete(b.untold, key)
		} else if next.IsZero() || rest.Before(next) {
			next = rest
		}
	}
	if soon := now.Add(lookPause); !next.IsZero() && next.Before(soon) {
		next = soon
	}
	if !next.IsZero() {
		b.lookLocked(next)
	}
}

// dueLocked has people told of the waits of a key that are due, and returns when the next one is; zero for none. The lock is
// held.
func (b *Box[M]) dueLocked(key Key, now time.Time) (next time.Time) {
	s := b.keys[key]
	if s == nil || s.stand == nil {
		return next
	}
	for i := range s.stand.open {
		o := &s.stand.open[i]
		at := o.due()
		switch {
		case at.IsZero():
		case !at.After(now):
			o.told, o.at, o.pause = o.Reason, now, min(max(2*o.pause, waitTold), pauseMost)
			b.sayLocked(Wait{Key: key, Open: o.Open})
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	return next
}

// sayLocked has people told of a wait, after those before it, when the lock is free. The lock is held.
func (b *Box[M]) sayLocked(w Wait) {
	b.news = append(b.news, w)
	b.says.Store(true)
}

// tell tells people of waits. The lock is not held.
func (b *Box[M]) tell() {
	if !b.says.Load() {
		return
	}
	b.telling.Lock()
	defer b.telling.Unlock()
	b.mu.Lock()
	all := b.news
	b.news = nil
	b.says.Store(false)
	b.mu.Unlock()
	for _, w := range all {
		b.waits(w)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/progress"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/timer"
)

// startTimers returns the object's timers as they are for this pass, nil where there are none. They are kept only when the pass is
// remembered: the ticks of one that failed are there for the next. A timer with idle that has failed and
// waits for its next attempt waits for the object to come to rest instead, when that has changed.
func (p *pass) startTimers(fresh bool) []timer.Tick {
	timers := p.r.rules.timers
	if len(timers) == 0 || p.deletion != "" {
		return nil
	}
	ticks := slices.Clone(p.memory.ticks)
	if ticks == nil {
		for _, h := range timers {
			ticks = append(ticks, timer.First(h.Timing, p.now, fresh))
		}
	}
	for i, h := range timers {
		if h.Timing.Idle == 0 {
			continue
		}
		var changed bool
		ticks[i], changed = ticks[i].Look(h.Timing, p.look.Digest(h.View), p.now)
		if e := p.ledger.Entry(h); changed && e.Try.Cause == dsl.Timer {
			e.Try = progress.Record{}
			p.ledger.Put(h, e)
		}
	}
	return ticks
}

// fires reports whether a timer handler's time has come.
func (p *pass) fires(h book.Reader, ticks []timer.Tick) bool {
	i := slices.IndexFunc(p.r.rules.timers, func(t book.Reader) bool { return t.Handler == h.Handler })
	return i >= 0 && ticks != nil && ticks[i].Fires(h.Timing, p.now)
}

// rescheduleTimers keeps the timers for the next pass, and makes that come in time.
func (p *pass) rescheduleTimers(ticks []timer.Tick) {
	p.memory.ticks = ticks
	if ticks == nil {
		return
	}
	now := time.Now()
	for i, h := range p.r.rules.timers {
		k := ticks[i]
		if k.Passed(p.now) {
			k = k.Next(h.Timing, now)
		}
		if j := p.jobs.Of(h); j != nil && j.Asks() {
			k = k.Own(p.look.Digest(h.View))
		}
		if due := k.Due(); !due.IsZero() {
			// Due, and not Resync, which would come after all of a first listing: a timer has its
			// time. What is fresh goes before both.
			p.next = p.next.sooner(due.Sub(now), queue.Due)
		}
		ticks[i] = k
	}
}

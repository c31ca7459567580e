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

// startTimers sets the object's timers as they are for this pass. They are kept only when the pass is
// remembered: the ticks of one that failed are there for the next. A timer with idle that has failed and
// waits for its next attempt waits for the object to come to rest instead, when that has changed.
func (p *pass) startTimers() {
	timers := p.r.rules.timers
	if len(timers) == 0 || p.deletion != "" {
		return
	}
	p.ticks = slices.Clone(p.memory.ticks)
	if p.ticks == nil {
		for _, h := range timers {
			p.ticks = append(p.ticks, timer.First(h.Timing, p.now, p.fresh))
		}
	}
	for i, h := range timers {
		if h.Timing.Idle == 0 {
			continue
		}
		var changed bool
		p.ticks[i], changed = p.ticks[i].Look(h.Timing, p.sight.Digest(h.View), p.now)
		if e := p.entry(h); changed && e.Try.Cause == dsl.Timer {
			e.Try = progress.Record{}
			p.put(h, e)
		}
	}
}

// fires reports whether a timer handler's time has come.
func (p *pass) fires(h book.Reader) bool {
	i := slices.IndexFunc(p.r.rules.timers, func(t book.Reader) bool { return t.Handler == h.Handler })
	return i >= 0 && p.ticks != nil && p.ticks[i].Fires(h.Timing, p.now)
}

// rescheduleTimers keeps the timers for the next pass, and makes that come in time.
func (p *pass) rescheduleTimers() {
	p.memory.ticks = p.ticks
	if p.ticks == nil {
		return
	}
	now := time.Now()
	for i, h := range p.r.rules.timers {
		k := p.ticks[i]
		if k.Passed(p.now) {
			k = k.Next(h.Timing, now)
		}
		if slices.ContainsFunc(p.jobs, func(j *job) bool { return j.reader.Handler == h.Handler && j.asks() }) {
			k = k.Own(p.sight.Digest(h.View))
		}
		if due := k.Due(); !due.IsZero() {
			// Due, and not Resync, which would come after all of a first listing: a timer has its
			// time. What is fresh goes before both.
			p.next = p.next.sooner(due.Sub(now), queue.Due)
		}
		p.ticks[i] = k
	}
}

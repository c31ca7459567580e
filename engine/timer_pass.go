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
)

// wind sets the object's timers as they are for this pass. They are kept only when the pass is
// remembered: the ticks of one that failed are there for the next.
func (p *pass) wind() {
	timers := p.r.rules.timers
	if len(timers) == 0 || p.deletion != "" {
		return
	}
	p.ticks = slices.Clone(p.memory.ticks)
	if p.ticks == nil {
		for _, h := range timers {
			p.ticks = append(p.ticks, firstTick(h.Timing, p.now, p.fresh))
		}
	}
	for i, h := range timers {
		if h.Timing.Idle > 0 {
			p.listen(h, &p.ticks[i])
		}
	}
}

// listen notes for a timer with idle that what its handler looks at has changed. One that has
// failed and waits for its next attempt then waits for the object to come to rest instead.
func (p *pass) listen(h book.Reader, k *tick) {
	view := p.sight.Digest(h.View)
	if k.still != nil && k.still.view == view {
		return
	}
	k.still = &stillness{view: view, since: p.now}
	if e := p.entry(h); e.Try.Cause == dsl.Timer {
		e.Try = progress.Record{}
		p.put(h, e)
	}
	if h.Timing.Every == 0 && h.Timing.Cron == "" {
		next := idleTick(h.Timing, p.now)
		k.due, k.grid = next.due, next.grid
	}
}

// rings reports whether a timer handler's time has come, and for one with idle, whether its object
// rests.
func (p *pass) rings(h book.Reader) bool {
	i := slices.IndexFunc(p.r.rules.timers, func(t book.Reader) bool { return t.Handler == h.Handler })
	if i < 0 || p.ticks == nil || !p.ticks[i].struck(p.now) {
		return false
	}
	q := p.ticks[i].still
	return q == nil || p.now.Sub(q.since) >= h.Timing.Idle
}

// rewind keeps the timers for the next pass, and makes that come in time.
func (p *pass) rewind() {
	now := time.Now()
	for i, h := range p.r.rules.timers {
		if p.ticks == nil {
			break
		}
		k := &p.ticks[i]
		if k.struck(p.now) {
			*k = k.after(h.Timing, now)
		}
		p.ownChange(h, k)
		if !k.due.IsZero() {
			// Due, and not Resync, which would come after all of a first listing: a timer has its
			// time. What is fresh goes before both.
			p.next = p.next.sooner(k.due.Sub(now), queue.Due)
		}
	}
	p.memory.ticks = p.ticks
}

// ownChange makes what a handler with idle has changed itself no change for it: it would never
// come to rest, or never again.
func (p *pass) ownChange(h book.Reader, k *tick) {
	if k.still == nil {
		return
	}
	for _, j := range p.jobs {
		if j.reader.Handler == h.Handler && j.asks() {
			k.still = &stillness{view: p.sight.Digest(j.reader.View), since: k.still.since}
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
)

// Clock are an object's timers in one pass.
type Clock struct {
	// Handlers are the timer handlers of the resource, Now is the time of the pass.
	Handlers []book.Reader
	Now      time.Time
	// Ticks are those of the handlers, as the pass leaves them; nil where there are none.
	Ticks []Tick
}

// ClockPass is what a pass knows of its object when it starts the timers.
type ClockPass struct {
	Now time.Time
	// Before are the ticks that the last pass has left, nil for none. Fresh: the object is new.
	Before []Tick
	Fresh  bool
	Look   *book.Look
	Ledger *book.Ledger
	// About is what a handler is asked about that works out its first run.
	About func(book.Reader) *dsl.Subject
}

// StartClock returns the object's timers as they are for this pass. They are kept only when the pass is remembered: the ticks
// of one that failed are there for the next. A timer with idle that has failed and waits for its next attempt waits for
// the object to come to rest instead, when that has changed.
func StartClock(handlers []book.Reader, p ClockPass) Clock {
	now, look, l := p.Now, p.Look, p.Ledger
	c := Clock{Handlers: handlers, Now: now, Ticks: slices.Clone(p.Before)}
	if c.Ticks == nil {
		for _, h := range handlers {
			c.Ticks = append(c.Ticks, FirstTickOf(h.Handler, now, p.Fresh, func() *dsl.Subject { return p.About(h) }))
		}
	}
	for i, h := range handlers {
		if h.Timing.Idle == 0 {
			continue
		}
		var changed bool
		c.Ticks[i], changed = c.Ticks[i].Look(h.Timing, look.Digest(h.View), now)
		if e := l.Entry(h); changed && e.Try.Cause == dsl.Timer {
			e.Try = book.Record{}
			l.Put(h, e)
		}
	}
	return c
}

// FirstTickOf returns the first run of a timer. Fresh: its object is new. About is what the handler is asked about, if it
// works that out.
func FirstTickOf(h *dsl.Handler, now time.Time, fresh bool, about func() *dsl.Subject) Tick {
	if h.Delay == nil {
		return FirstTick(h.Timing, now, fresh)
	}
	return DelayedTick(h.Timing, now, attempt.Delay(h.Delay, about))
}

// Fires reports whether a timer handler's time has come.
func (c Clock) Fires(h book.Reader) bool {
	i := slices.IndexFunc(c.Handlers, func(t book.Reader) bool { return t.Handler == h.Handler })
	return i >= 0 && c.Ticks != nil && c.Ticks[i].Fires(h.Timing, c.Now)
}

// Ran reports whether a timer handler has run for the object in this process.
func (c Clock) Ran(h book.Reader) bool {
	i := slices.IndexFunc(c.Handlers, func(t book.Reader) bool { return t.Handler == h.Handler })
	return i >= 0 && c.Ticks != nil && c.Ticks[i].Ran
}

// Wind sets the timers for the next pass, when the handlers with something to do have run and left the object as look
// shows it. Due is called with the time of each that has one.
func (c Clock) Wind(jobs Jobs, look *book.Look, now time.Time, due func(time.Time)) {
	if c.Ticks == nil {
		return
	}
	for i, h := range c.Handlers {
		k, ran := c.Ticks[i], c.Ticks[i].Ran
		switch j := jobs.Of(h); {
		case j != nil && j.Ran && j.Cause == dsl.Timer && j.Record.Done:
			k = TickAfter(k, h.Timing, c.Now, now)
			ran = true
		case k.Fires(h.Timing, c.Now):
			k = k.Next(h.Timing, now)
		case k.Passed(c.Now):
			k = k.Skip(h.Timing, now)
		}
		if j := jobs.Of(h); j != nil && j.Asks() {
			k = k.Own(look.Digest(h.View))
		}
		if at := k.Due(); !at.IsZero() {
			due(at)
		}
		k.Ran = ran
		c.Ticks[i] = k
	}
}

// TickAfter returns the run that follows one that has come to its end in a pass that began at a time.
func TickAfter(k Tick, t *dsl.Timing, began, now time.Time) Tick {
	if k.Passed(began) {
		k = k.Next(t, now)
	}
	return k.Ended(t, now)
}

// unkeptLook is how long it is until a handler is run again that asked for it at once, when the server has not kept what
// it wanted.
const unkeptLook = time.Minute

// Times are those of a pass.
type Times struct{ Began, Ended time.Time }

// AlarmAgain returns when handlers run again that asked for it, at the end of a pass with these jobs: those of before included
// that have not run since. Unkept: the server did not keep what was written, so what is asked for at once would turn round
// and round.
func AlarmAgain(before *Alarm, jobs Jobs, at Times, unkept bool) *Alarm {
	out := before.Pending(at.Began)
	for _, j := range jobs {
		if !j.Ran {
			continue
		}
		if out = out.Without(j.Reader.ID); j.Again == nil {
			continue
		}
		after := *j.Again
		if j.Refused || unkept && j.Asks() {
			after = max(after, unkeptLook)
		}
		out = out.With(j.Reader.ID, after, at.Ended)
	}
	return out
}

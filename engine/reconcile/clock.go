// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// Clock are an object's timers in one reconcile.
type Clock struct {
	// Handlers are the timer handlers of the resource, Now is the time of the reconcile.
	Handlers []progress.Handler
	Now      time.Time
	// Ticks are those of the handlers, as the reconcile leaves them; nil where there are none.
	Ticks []Tick
}

// startClock returns the object's timers as they are for this reconcile. They are kept only when the reconcile is remembered: the ticks
// of one that failed are there for the next. A timer with idle that has failed and waits for its next attempt waits for
// the object to come to rest instead, when that has changed.
func (p *run) startClock(d Draft) *Clock {
	handlers := p.Rules.Timers
	c := &Clock{Handlers: handlers, Now: p.Now, Ticks: slices.Clone(p.memory.Ticks)}
	if c.Ticks == nil {
		for _, h := range handlers {
			c.Ticks = append(c.Ticks, firstTickOf(h.Handler, p.Now, p.Changes.Fresh, func() *dsl.Subject {
				return p.subject(d, h, dsl.Timer, progress.Record{}, p.family.Reader(), p.indexes.For(h.ID, dsl.Timer))
			}))
		}
	}
	for i, h := range handlers {
		if h.Timing.Idle == 0 {
			continue
		}
		var changed bool
		c.Ticks[i], changed = c.Ticks[i].Look(h.Timing, d.Look.Digest(h.View), p.Now)
		if e := p.ledger.Entry(h); changed && e.Try.Cause == dsl.Timer {
			e.Try = progress.Record{}
			p.ledger.Put(h, e)
		}
	}
	return c
}

// firstTickOf returns the first run of a timer. Fresh: its object is new. About returns the subject of a
// computed delay.
func firstTickOf(h *dsl.Handler, now time.Time, fresh bool, about func() *dsl.Subject) Tick {
	if h.Delay == nil {
		return firstTick(h.Timing, now, fresh)
	}
	return delayedTick(h.Timing, now, attempt.Delay(h.Delay, about))
}

// Fires reports whether a timer handler's time has come.
func (c *Clock) Fires(h progress.Handler) bool {
	if c == nil {
		return false
	}
	i := slices.IndexFunc(c.Handlers, func(t progress.Handler) bool { return t.Handler == h.Handler })
	return i >= 0 && c.Ticks[i].Fires(h.Timing, c.Now)
}

// Ran reports whether a timer handler has run for the object in this process.
func (c *Clock) Ran(h progress.Handler) bool {
	if c == nil {
		return false
	}
	i := slices.IndexFunc(c.Handlers, func(t progress.Handler) bool { return t.Handler == h.Handler })
	return i >= 0 && c.Ticks[i].Ran
}

// Wind sets the timers for the next reconcile, when the handlers with something to do have run and left the object as look
// shows it. It returns the time of the earliest, zero where none has one.
func (c *Clock) Wind(jobs Attempts, look *progress.Look, now time.Time) (due time.Time) {
	if c == nil {
		return due
	}
	for i, h := range c.Handlers {
		k, ran := c.Ticks[i], c.Ticks[i].Ran
		switch j := jobs.Of(h); {
		case j != nil && j.Ran && j.Cause == dsl.Timer && j.Record.Done:
			k = tickAfter(k, h.Timing, c.Now, now)
			ran = true
		case k.Fires(h.Timing, c.Now):
			k = k.Next(h.Timing, now)
		case k.Passed(c.Now):
			k = k.Skip(h.Timing, now)
		}
		if j := jobs.Of(h); j != nil && j.Asks() {
			k = k.Own(look.Digest(h.View))
		}
		if at := k.Due(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
		k.Ran = ran
		c.Ticks[i] = k
	}
	return due
}

// tickAfter returns the run that follows one that has come to its end in a reconcile that began at a time.
func tickAfter(k Tick, t *dsl.Timing, began, now time.Time) Tick {
	if k.Passed(began) {
		k = k.Next(t, now)
	}
	return k.Ended(t, now)
}

// unkeptLook is how long it is until a handler is run again that asked for it at once, when the server has not kept what
// it wanted.
const unkeptLook = time.Minute

// Times are those of a reconcile.
type Times struct{ Began, Ended time.Time }

// alarmAgain returns the times at which handlers asked to run again, at the end of a reconcile with these jobs. Earlier times of
// handlers that have not run since are kept. Unkept: the server did not keep what was written, so what is asked for at once would turn round
// and round.
func alarmAgain(before *Alarm, jobs Attempts, at Times, unkept bool) *Alarm {
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
		out.soon = out.soon || j.Slowed // the time is not its own: what it writes counts as that of a loop
	}
	return out
}

// scheduleNext sets when the object's timers, its resync period and the handlers that asked to run again are due.
func (p *run) scheduleNext(st State) State {
	m, now := p.memory, time.Now()
	clock := st.Found.Clock
	if due := clock.Wind(st.Jobs, st.Look, now); !due.IsZero() {
		// Due, and not Resync, which would come after all of a first listing: a timer has its time. Fresh objects go
		// before both.
		st.Due = st.Due.Sooner(time.Until(due), queue.Due)
	}
	if clock != nil {
		m.Ticks = clock.Ticks
	} else {
		m.Ticks = nil
	}
	if len(p.Rules.AtTimes) > 0 {
		st = p.windAppointments(st)
	}
	st = p.alarm(st)
	if m.Resync != nil {
		st.Due = st.Due.Sooner(time.Until(*m.Resync), queue.Resync)
	}
	return st
}

// alarm sets when handlers run again that asked for it.
func (p *run) alarm(st State) State {
	m, now := p.memory, time.Now()
	m.Again = alarmAgain(m.Again, st.Jobs, Times{Began: p.Now, Ended: now}, len(m.Ignored) > 0)
	if at := m.Again.Next(); !at.IsZero() {
		st.Due = st.Due.Sooner(at.Sub(now), queue.Due)
	}
	return st
}

// Alarm is when a handler of an object asked to be run again, with those of other handlers behind it. It is never changed;
// nil stands for no alarm. There may be one for each object of a cluster, so it is one piece.
type Alarm struct {
	handler string
	at      time.Time
	soon    bool
	next    *Alarm
}

// AtOnce reports whether a handler that asks to run after a time asks to run at once. A tenth of a second and more is a pace,
// which somebody has chosen; less keeps a core busy.
func AtOnce(after time.Duration) bool { return after < 100*time.Millisecond }

// With returns the alarms with that of a handler after a time, in the place of the one that it had. One that is at once is
// soon.
func (a *Alarm) With(handler string, after time.Duration, now time.Time) *Alarm {
	return &Alarm{handler: handler, at: now.Add(max(after, 0)), soon: AtOnce(after), next: a.Without(handler)}
}

// Without returns the alarms but for that of a handler.
func (a *Alarm) Without(handler string) *Alarm {
	return a.only(func(one *Alarm) bool { return one.handler != handler })
}

// Pending returns the alarms that are not due.
func (a *Alarm) Pending(now time.Time) *Alarm {
	return a.only(func(one *Alarm) bool { return !one.Passed(now) })
}

// only returns the alarms that are wanted: these themselves where all are.
func (a *Alarm) only(wanted func(*Alarm) bool) *Alarm {
	if a == nil {
		return nil
	}
	rest := a.next.only(wanted)
	switch {
	case !wanted(a):
		return rest
	case rest == a.next:
		return a
	}
	return &Alarm{a.handler, a.at, a.soon, rest}
}

// Of returns that of a handler, nil when it has none.
func (a *Alarm) Of(handler string) *Alarm {
	for ; a != nil; a = a.next {
		if a.handler == handler {
			return a
		}
	}
	return nil
}

// Passed reports whether the time of the first alarm has come. It is false without an alarm.
func (a *Alarm) Passed(now time.Time) bool { return a != nil && !now.Before(a.at) }

// Soon reports whether the first alarm was to be at once.
func (a *Alarm) Soon() bool { return a != nil && a.soon }

// Next returns when the earliest is due, zero without an alarm.
func (a *Alarm) Next() (at time.Time) {
	for ; a != nil; a = a.next {
		if at.IsZero() || a.at.Before(at) {
			at = a.at
		}
	}
	return at
}

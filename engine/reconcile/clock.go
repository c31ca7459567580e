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

// Clock has an object's timers in one reconcile.
type Clock struct {
	// Handlers are the timer handlers of the resource. Now is the time of the reconcile.
	Handlers []progress.Handler
	Now      time.Time
	// Ticks are the handlers' next runs; nil without timers.
	Ticks []Tick
}

// startClock returns the object's timers for this reconcile. The ticks are kept only when the reconcile is remembered;
// after a failure the next one begins with the old ticks. If the object has changed, a failed timer with idle waits for
// idleness in place of its retry.
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
		if e := p.progress.Entry(h); changed && e.Try.Cause == dsl.Timer {
			e.Try = progress.Record{}
			p.progress.Put(h, e)
		}
	}
	return c
}

// firstTickOf returns the first run of a timer. Fresh: its object is new. About returns the subject of a computed delay.
func firstTickOf(h *dsl.Handler, now time.Time, fresh bool, about func() *dsl.Subject) Tick {
	if h.Delay == nil {
		return firstTick(h.Timing, now, fresh)
	}
	return delayedTick(h.Timing, now, attempt.Delay(h.Delay, about))
}

// Fires reports whether a timer handler is due.
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

// ScheduleNext sets the timers for the next reconcile, after the handlers have run. Snapshot is the object after their changes. It
// returns the time of the earliest, zero for none.
func (c *Clock) ScheduleNext(attempts Attempts, snapshot *progress.Snapshot, now time.Time) (due time.Time) {
	if c == nil {
		return due
	}
	for i, h := range c.Handlers {
		k, ran := c.Ticks[i], c.Ticks[i].Ran
		switch j := attempts.Of(h); {
		case j != nil && j.Ran && j.Cause == dsl.Timer && j.Record.Done:
			k = tickAfter(k, h.Timing, c.Now, now)
			ran = true
		case k.Fires(h.Timing, c.Now):
			k = k.Next(h.Timing, now)
		case k.Passed(c.Now):
			k = k.Skip(h.Timing, now)
		}
		if j := attempts.Of(h); j != nil && j.Asks() {
			k = k.Own(snapshot.Digest(h.View))
		}
		if at := k.Due(); !at.IsZero() && (due.IsZero() || at.Before(due)) {
			due = at
		}
		k.Ran = ran
		c.Ticks[i] = k
	}
	return due
}

// tickAfter returns the run after one that ended in a reconcile that began at a time.
func tickAfter(k Tick, t *dsl.Timing, began, now time.Time) Tick {
	if k.Passed(began) {
		k = k.Next(t, now)
	}
	return k.Ended(t, now)
}

// unkeptLook is the wait of a handler that asked to run at once, if the server has not kept its changes.
const unkeptLook = time.Minute

// Times are when a reconcile began and ended.
type Times struct{ Began, Ended time.Time }

// alarmAgain returns when handlers run again at their own request, after a reconcile with these attempts. Alarms of
// handlers that did not run are kept. Unkept: the server did not keep the written changes, so running at once would
// loop.
func alarmAgain(before *Alarm, attempts Attempts, at Times, unkept bool) *Alarm {
	out := before.Pending(at.Began)
	for _, j := range attempts {
		if !j.Ran {
			continue
		}
		if out = out.Without(j.Reader.ID); j.Again == nil {
			continue
		}
		after := *j.Again
		if j.Rejected || unkept && j.Asks() {
			after = max(after, unkeptLook)
		}
		out = out.With(j.Reader.ID, after, at.Ended)
		out.soon = out.soon || j.Slowed // the engine chose the time, so its writes count as those of a loop
	}
	return out
}

// scheduleNext sets when the object's timers, its resync and the handlers that asked to run again are due.
func (p *run) scheduleNext(st State) State {
	m, now := p.memory, time.Now()
	clock := st.Found.Clock
	if due := clock.ScheduleNext(st.Attempts, st.Look, now); !due.IsZero() {
		// Keys of class Resync wait until all objects of a first listing had a reconcile, so the class is Due. Fresh
		// objects go before both.
		st.Due = st.Due.Sooner(time.Until(due), queue.Due)
	}
	if clock != nil {
		m.Ticks = clock.Ticks
	} else {
		m.Ticks = nil
	}
	if len(p.Rules.AtTimes) > 0 {
		st = p.scheduleAppointments(st)
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
	m.Again = alarmAgain(m.Again, st.Attempts, Times{Began: p.Now, Ended: now}, len(m.Ignored) > 0)
	if at := m.Again.Next(); !at.IsZero() {
		st.Due = st.Due.Sooner(at.Sub(now), queue.Due)
	}
	return st
}

// Alarm is the time at which a handler of an object asked to run again. It is an immutable list, with one element for
// each handler; nil is the empty list. Each object of a cluster may have one, so it is a single allocation.
type Alarm struct {
	handler string
	at      time.Time
	soon    bool
	next    *Alarm
}

// AtOnce reports whether a wait counts as running at once. From a tenth of a second on, somebody has chosen a pace; less
// keeps a core busy.
func AtOnce(after time.Duration) bool { return after < 100*time.Millisecond }

// With returns the list with a handler's alarm after a time, in place of its earlier one. The alarm is soon if the time
// counts as at once.
func (a *Alarm) With(handler string, after time.Duration, now time.Time) *Alarm {
	return &Alarm{handler: handler, at: now.Add(max(after, 0)), soon: AtOnce(after), next: a.Without(handler)}
}

// Without returns the list without a handler's alarm.
func (a *Alarm) Without(handler string) *Alarm {
	return a.only(func(one *Alarm) bool { return one.handler != handler })
}

// Pending returns the alarms that are not due.
func (a *Alarm) Pending(now time.Time) *Alarm {
	return a.only(func(one *Alarm) bool { return !one.Passed(now) })
}

// only returns the wanted alarms: the same list if all are wanted.
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

// Of returns a handler's alarm, nil for none. Others may follow it.
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

// Soon reports whether the first alarm was a request to run at once.
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

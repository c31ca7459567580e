// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"slices"
	"time"
)

// Timing says when a handler with cause [Timer] runs. At least one of Every, Pause, Idle, Cron and At is set, at
// most one of Every, Pause and Cron, and At alone.
//
// Times are kept in memory and use the resource's queue: a timer has no goroutine. Runs that fell due while no
// process worked are not caught up, except those of At.
type Timing struct {
	// Every is the time from one run to the next. For an object that exists when the process starts, the first run
	// comes at a random time within the period, so that objects do not fire together; for a new object, it comes
	// after one period. A failed run is retried by the handler's back-off, which does not move the next runs. Runs
	// that fall due during retries, or while the handler still runs, are skipped.
	Every time.Duration
	// Pause is the time from the end of one run, including its retries, to the beginning of the next. The first run
	// comes as with Every.
	Pause time.Duration
	// Cron is a schedule of five fields, or one of @hourly, @daily, @weekly, @monthly, @yearly.
	Cron string
	// TimeZone is the time zone of Cron, as in "Europe/Berlin". Defaults to UTC. When clocks change, each
	// local time still counts once: a skipped one at the moment of the change, a repeated one the first time. A
	// schedule for all hours runs whenever clocks show one of its times.
	TimeZone string
	// Idle is how long the handler's view, the object's essence or Handler.Fields, must have been unchanged. On its
	// own, the handler runs once after each change. With Every or Cron, it runs at each of their times at which the
	// view has been idle for long enough. With Pause, it runs when both times have passed. A new process counts
	// from when it first sees the object. Changes by the handler's own Request.Patch do not count.
	Idle time.Duration
	// At, when set, computes a time from the object. The handler runs once at that time, or at once if it has passed.
	// The zero time means that there is none. The function must be quick, must not change anything, and must read
	// nothing but the object, because it is called for each look at the object. When it gives another time, the old
	// one does not count any more.
	//
	// The engine keeps on the object the latest time for which the handler ran to its end. The handler runs for later
	// times only: not twice for the same time, and after a restart for a time that came while no process worked.
	// After an error the handler does not run, and the function is called again after the handler's back-off.
	At func(s *Subject) (time.Time, error)
	// Jitter is the most by which a run is moved at random: earlier for Every, later for Pause, for Cron and for
	// Idle alone, and never past the next run. Zero means a tenth of the time between two runs, or of Idle, and at
	// most a minute for Pause, Cron and Idle. A negative value means no jitter.
	Jitter time.Duration

	schedule *localSchedule
}

// Every adds a handler that runs for each object in each period; see Timing.Every.
func (r *Resource) Every(period time.Duration, id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{Every: period})}, options...)...)
}

// Pausing adds a handler that runs for each object again and again, with a pause between two runs; see
// Timing.Pause.
func (r *Resource) Pausing(pause time.Duration, id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{Pause: pause})}, options...)...)
}

// Cron adds a handler that runs for each object on a schedule; see Timing.Cron.
func (r *Resource) Cron(schedule, id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{Cron: schedule})}, options...)...)
}

// Idle adds a handler that runs once for each object after the object has been unchanged for a time; see
// Timing.Idle.
func (r *Resource) Idle(quiet time.Duration, id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{Idle: quiet})}, options...)...)
}

// Once adds a handler that runs once for each object at a time that is computed from the object; see Timing.At.
func (r *Resource) Once(at func(s *Subject) (time.Time, error), id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{At: at})}, options...)...)
}

// Schedule adds a handler that runs by time for the resource as a whole, and not for each object. Request.Objects
// has all objects. Its id must differ from the ids of the resource's handlers. It runs in the leading process, or
// without leader election, in each process.
func (r *Resource) Schedule(timing Timing, id string, fn Func, options ...Option) {
	whole := func(h *Handler) { h.ResourceWide = true }
	r.On([]Cause{Timer}, id, fn, append([]Option{At(timing), whole}, options...)...)
}

// At sets the times at which the handler runs. It adds the cause [Timer] to its others.
func At(timing Timing) Option {
	return func(h *Handler) {
		h.Timing = &timing
		h.Causes = append(slices.Clone(h.Causes), Timer)
	}
}

// Next returns the time of the next run after the given time, or zero if there is none. It is only for a timing
// with Cron of a handler that was added.
func (t *Timing) Next(after time.Time) time.Time {
	if t.schedule == nil {
		return time.Time{}
	}
	return t.schedule.next(after)
}

// checkZone reports an unknown time zone.
func checkZone(name string) error {
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return fmt.Errorf("the time zone %q is not known", name)
	}
	return nil
}

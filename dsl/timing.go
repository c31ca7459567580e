// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
)

// Timing says when a handler with cause [Timer] runs. At least one of Every, Pause, Idle and Cron is set,
// and of Every, Pause and Cron no more than one.
//
// Times are kept in memory and ride the resource's queue: a timer holds no goroutine. What fell
// due while no process worked is not caught up.
type Timing struct {
	// Every is the time from one run to the next. The first run of an object that a process finds
	// at its start comes at a random time within the period, so that objects do not fire together;
	// that of a new object after one period. A run that fails is tried again by the handler's
	// back-off, which does not move the next ones; those that fall due meanwhile, or while the
	// handler still runs, are left out.
	Every time.Duration
	// Pause is the time from the end of one run to the beginning of the next, so that a run which takes long, or is
	// tried again and again, has its pause after it. The first run comes as with Every.
	Pause time.Duration
	// Cron is a schedule of five fields, or one of @hourly, @daily, @weekly, @monthly, @yearly.
	Cron string
	// TimeZone is the one that Cron is read in, as in "Europe/Berlin". Defaults to UTC. Where clocks
	// are changed, a run at a time that is left out is left out, one at a time that comes twice comes
	// twice.
	TimeZone string
	// Idle is how long what the handler looks at, the object's essence or Handler.Fields, must have
	// been the same. By itself the handler runs once after each change; with Every, at each
	// period in which it holds. With Cron, the same. With Pause, when both have passed. A new process counts from when it
	// first sees the object. What the handler itself changes by Request.Patch is no change.
	Idle time.Duration
	// Jitter is the most by which a run is moved, at random: earlier for Every, later for Pause, for Cron and
	// for Idle alone, and never past the next run. Zero means a tenth of the time between two runs,
	// or of Idle, which for Pause, Cron and Idle is at most a minute. A negative one means none.
	Jitter time.Duration

	schedule cron.Schedule
}

// Every adds a handler that runs for each object, time and again.
func (r *Resource) Every(period time.Duration, id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{Every: period})}, options...)...)
}

// Pausing adds a handler that runs for each object, time and again, each time when the last run has ended for as long; see
// Timing.Pause.
func (r *Resource) Pausing(pause time.Duration, id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{Pause: pause})}, options...)...)
}

// Cron adds a handler that runs for each object by a schedule; see Timing.Cron.
func (r *Resource) Cron(schedule, id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{Cron: schedule})}, options...)...)
}

// Idle adds a handler that runs for each object that was not changed for a time, once.
func (r *Resource) Idle(quiet time.Duration, id string, fn Func, options ...Option) {
	r.On([]Cause{Timer}, id, fn, append([]Option{At(Timing{Idle: quiet})}, options...)...)
}

// Schedule adds a handler that runs by time for the resource as a whole, and not for each object:
// Request.Objects has them all. Its id shares its names with the handlers'. It runs on the process
// that leads; without leader election, on each process.
func (r *Resource) Schedule(timing Timing, id string, fn Func, options ...Option) {
	whole := func(h *Handler) { h.ResourceWide = true }
	r.On([]Cause{Timer}, id, fn, append([]Option{At(timing), whole}, options...)...)
}

// At sets when the handler runs; it gives the handler the cause [Timer], beside its others.
func At(timing Timing) Option {
	return func(h *Handler) {
		h.Timing = &timing
		h.Causes = append(slices.Clone(h.Causes), Timer)
	}
}

// Next returns when the schedule's next run is after the time given; zero when never. Only for a
// timing with Cron that a handler has.
func (t *Timing) Next(after time.Time) time.Time {
	if t.schedule == nil {
		return time.Time{}
	}
	return t.schedule.Next(after)
}

// checkZone reports a time zone that is none.
func checkZone(name string) error {
	if _, err := time.LoadLocation(name); err != nil || name == "Local" {
		return fmt.Errorf("the time zone %q is not known", name)
	}
	return nil
}

// parseCron reads a schedule in a time zone that [checkZone] has passed, or in UTC.
func parseCron(text, timeZone string) (cron.Schedule, error) {
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	if len(text) > 4 && (text[:3] == "TZ=" || text[:4] == "CRON") {
		return nil, fmt.Errorf("reading schedule %q: a time zone stands in timeZone", text)
	}
	schedule, err := parser.Parse("TZ=" + cmp.Or(timeZone, "UTC") + " " + text)
	if err != nil {
		return nil, fmt.Errorf("reading schedule %q: %w", text, err)
	}
	if _, fixed := schedule.(cron.ConstantDelaySchedule); fixed {
		return nil, fmt.Errorf("reading schedule %q: a fixed period stands in every", text)
	}
	if schedule.Next(time.Now()).IsZero() {
		return nil, fmt.Errorf("reading schedule %q: that day never comes", text)
	}
	return schedule, nil
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"math/rand/v2"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// mostLate bounds the default jitter of timers whose runs are moved to a later time.
const mostLate = time.Minute

// Tick is the next run of a timer. It is kept in memory, for each object, or for the resource if the handler runs for
// that as a whole.
type Tick struct {
	// due is the time of the run; zero means not before the object has changed.
	due time.Time
	// grid is due without jitter. The following runs are counted from it, so that jitter and late workers do not move
	// them. Runs with a pause are counted from the end of the last run.
	grid time.Time
	// still is for timers with idle, since their object was first seen; nil for others.
	still *stillness
	// Ran: the handler has run for the object in this process.
	Ran bool
}

// stillness is how long nothing has changed.
type stillness struct {
	// view is a digest of the handler's view.
	view  string
	since time.Time
	// from is the earliest time of the first run; zero means any time.
	from time.Time
}

// firstTick returns the first run. For objects found at the start of the process it is random within the period, so that
// they do not all run together for ever. For a new object it comes after a whole period.
func firstTick(t *dsl.Timing, now time.Time, isNew bool) Tick {
	switch {
	case t.Cron != "":
		return cronTick(t, now)
	case t.Every == 0 && t.Pause == 0:
		return Tick{}
	case isNew && t.Every > 0:
		return everyTick(t, now.Add(t.Every), now)
	case isNew:
		return pauseTick(t, now.Add(t.Pause))
	}
	at := now.Add(rand.N(t.Every + t.Pause))
	return Tick{due: at, grid: at}
}

// delayedTick is firstTick for a handler with an initial delay.
func delayedTick(t *dsl.Timing, now time.Time, delay time.Duration) Tick {
	from := now.Add(delay)
	switch {
	case t.Cron != "":
		return cronTick(t, from)
	case t.Every > 0:
		return everyTick(t, from, now)
	case t.Pause > 0:
		return pauseTick(t, from)
	}
	return Tick{grid: from} // the object must be idle first
}

// Due returns the time of the next run; zero means not before the object has changed.
func (k Tick) Due() time.Time { return k.due }

// Passed reports whether the time of the next run has come.
func (k Tick) Passed(now time.Time) bool { return !k.due.IsZero() && !now.Before(k.due) }

// Fires reports whether the handler is due: its time has come and, for a timer with idle, its object has not changed for
// long enough.
func (k Tick) Fires(t *dsl.Timing, now time.Time) bool {
	return k.Passed(now) && (k.still == nil || now.Sub(k.still.since) >= t.Idle)
}

// Look notes the present view of a timer with idle. It reports whether the view has changed, so that the idle time
// begins again.
func (k Tick) Look(t *dsl.Timing, view string, now time.Time) (next Tick, changed bool) {
	if t.Idle == 0 || k.still != nil && k.still.view == view {
		return k, false
	}
	from := k.grid
	if k.still != nil {
		from = k.still.from
	}
	if t.Every == 0 && t.Pause == 0 && t.Cron == "" {
		k = idleTick(t, now, from)
	}
	k.still = &stillness{view: view, since: now, from: from}
	return k, true
}

// Own notes the view after the handler's own changes. They do not count as changes, or its object would never be idle.
func (k Tick) Own(view string) Tick {
	if k.still != nil {
		k.still = &stillness{view: view, since: k.still.since, from: k.still.from}
	}
	return k
}

// Next returns the run after this one. Runs that fell due until now are skipped.
func (k Tick) Next(t *dsl.Timing, now time.Time) Tick {
	var next Tick
	switch {
	case t.Cron != "":
		from := now
		if k.grid.After(now) {
			from = k.grid
		}
		next = cronTick(t, from)
	case t.Every > 0:
		grid := k.grid.Add(t.Every)
		if missed := now.Sub(grid); missed >= 0 {
			grid = grid.Add((missed/t.Every + 1) * t.Every)
		}
		next = everyTick(t, grid, now)
	case t.Pause > 0:
		next = pauseTick(t, now.Add(t.Pause))
	}
	next.still = k.still
	return next
}

// Skip returns the run after one whose time came while the object was not idle. With a pause, that is when the object
// will have been idle.
func (k Tick) Skip(t *dsl.Timing, now time.Time) Tick {
	if t.Pause == 0 || k.still == nil {
		return k.Next(t, now)
	}
	at := k.still.since.Add(t.Idle)
	return Tick{due: at, grid: at, still: k.still}
}

// Ended notes the end of a run, from which a pause is counted.
func (k Tick) Ended(t *dsl.Timing, now time.Time) Tick {
	if t.Pause == 0 {
		return k
	}
	return k.Next(t, now)
}

// everyTick moves a run of Every to an earlier time.
func everyTick(t *dsl.Timing, grid, now time.Time) Tick {
	most := min(jitter(t, t.Every), grid.Sub(now))
	return Tick{due: grid.Add(-randUpTo(most)), grid: grid}
}

// cronTick returns the schedule's first run after a time, moved later by jitter, but before the next run.
func cronTick(t *dsl.Timing, after time.Time) Tick {
	grid := t.Next(after)
	if grid.IsZero() {
		return Tick{}
	}
	between := t.Next(grid).Sub(grid)
	if between <= 0 {
		return Tick{due: grid, grid: grid} // it is the last run
	}
	most := min(jitter(t, min(between, 10*mostLate)), between-1)
	return Tick{due: grid.Add(randUpTo(most)), grid: grid}
}

// pauseTick moves a run of Pause to a later time.
func pauseTick(t *dsl.Timing, at time.Time) Tick {
	return Tick{due: at.Add(randUpTo(jitter(t, min(t.Pause, 10*mostLate)))), grid: at}
}

// idleTick returns the run of a timer that has only idle, after a change of its object. It is not before from.
func idleTick(t *dsl.Timing, since, from time.Time) Tick {
	at := since.Add(t.Idle)
	if from.After(at) {
		at = from
	}
	return Tick{due: at.Add(randUpTo(jitter(t, min(t.Idle, 10*mostLate)))), grid: at}
}

// jitter returns the most by which a run is moved: the timing's own, or a tenth of the given time.
func jitter(t *dsl.Timing, of time.Duration) time.Duration {
	if t.Jitter == 0 {
		return of / 10
	}
	return max(t.Jitter, 0)
}

func randUpTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return rand.N(most + 1)
}

// nextResync returns when an object is due for its next resync, nil without a period. The first period is random, so
// that objects that were listed together do not come back together.
func nextResync(period time.Duration, now time.Time, first bool) *time.Time {
	if period <= 0 {
		return nil
	}
	due := now.Add(period - rand.N(period/10+1))
	if first {
		due = now.Add(period/10 + rand.N(period-period/10))
	}
	return &due
}

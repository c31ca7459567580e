// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"math/rand/v2"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// mostLate bounds the jitter of a timer that names none, where it moves runs to a later time.
const mostLate = time.Minute

// Tick is when a timer handler runs next. It is kept in memory, for each object or, where the handler runs
// for the resource as a whole, for the resource.
type Tick struct {
	// due is when; zero means not before the object has changed.
	due time.Time
	// grid is due without jitter. Runs are counted from it, so neither jitter nor a late worker moves the
	// ones that follow; but for those that are counted from the end of the last one.
	grid time.Time
	// still is for timers with idle, since their object was first seen; nil for others.
	still *stillness
	// Ran: the handler has run for the object in this process.
	Ran bool
}

// stillness is the time since which nothing has changed.
type stillness struct {
	// view is the digest of what the handler looks at.
	view  string
	since time.Time
	// from is when the first run may be; zero means at any time.
	from time.Time
}

// firstTick returns the first run. What a process finds at its start is spread over the period, or it would
// come together for ever after; what is new has a whole period before it.
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

// delayedTick is firstTick for a handler that says how long after the first look at its object that is.
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
	return Tick{grid: from} // the object has to rest first
}

// Due returns the time of the next run; zero means not before the object has changed.
func (k Tick) Due() time.Time { return k.due }

// Passed reports whether the time of the next run has come.
func (k Tick) Passed(now time.Time) bool { return !k.due.IsZero() && !now.Before(k.due) }

// Fires reports whether the handler is to run: its time has come and, for a timer with idle, its object
// has rested as long.
func (k Tick) Fires(t *dsl.Timing, now time.Time) bool {
	return k.Passed(now) && (k.still == nil || now.Sub(k.still.since) >= t.Idle)
}

// Look notes what the handler of a timer with idle looks at now, by its digest. It reports whether that has
// changed, so that the time of rest begins again.
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

// Own notes what the handler has left behind for itself to look at: what it changes itself is no change for
// it, or its object would never come to rest.
func (k Tick) Own(view string) Tick {
	if k.still != nil {
		k.still = &stillness{view: view, since: k.still.since, from: k.still.from}
	}
	return k
}

// Next returns the run that follows one. What fell due until now is left out.
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

// Skip returns the run that follows one whose time has come while the object did not rest yet. With a pause, that is
// when it will have rested.
func (k Tick) Skip(t *dsl.Timing, now time.Time) Tick {
	if t.Pause == 0 || k.still == nil {
		return k.Next(t, now)
	}
	at := k.still.since.Add(t.Idle)
	return Tick{due: at, grid: at, still: k.still}
}

// Ended notes that a run has come to its end, from which a pause is counted.
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

// cronTick returns the schedule's first run after a time, moved to a later one, but not to the run
// that follows.
func cronTick(t *dsl.Timing, after time.Time) Tick {
	grid := t.Next(after)
	if grid.IsZero() {
		return Tick{}
	}
	between := t.Next(grid).Sub(grid)
	if between <= 0 {
		return Tick{due: grid, grid: grid} // it is the last one
	}
	most := min(jitter(t, min(between, 10*mostLate)), between-1)
	return Tick{due: grid.Add(randUpTo(most)), grid: grid}
}

// pauseTick moves a run of Pause to a later time.
func pauseTick(t *dsl.Timing, at time.Time) Tick {
	return Tick{due: at.Add(randUpTo(jitter(t, min(t.Pause, 10*mostLate)))), grid: at}
}

// idleTick returns the run of a timer that has idle alone, once its object has changed. It is not before the time from.
func idleTick(t *dsl.Timing, since, from time.Time) Tick {
	at := since.Add(t.Idle)
	if from.After(at) {
		at = from
	}
	return Tick{due: at.Add(randUpTo(jitter(t, min(t.Idle, 10*mostLate)))), grid: at}
}

// jitter is the most by which a run is moved: a tenth of the time given, unless the timing says.
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

// nextResync returns when an object is due for its next resync, nil where there is no period. The first period is drawn at
// random, so that objects listed together do not come back together.
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

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// mostLate bounds the jitter of a timer that names none, where it moves runs to a later time.
const mostLate = time.Minute

// tick is when a timer handler runs next. It is kept in memory, for each object or, where the
// handler runs for the resource as a whole, for the resource.
type tick struct {
	// due is when; zero means not before the object has changed.
	due time.Time
	// grid is due without jitter. Runs are counted from it, so neither jitter nor a late worker
	// moves the ones that follow.
	grid time.Time
	// still is for timers with idle; nil for others.
	still *stillness
}

// stillness tells since when nothing has changed.
type stillness struct {
	// view is the digest of what the handler looks at.
	view  string
	since time.Time
}

// firstTick returns the first run. What a process finds at its start is spread over the period,
// or it would come together for ever after; what is new has a whole period before it.
func firstTick(t *dsl.Timing, now time.Time, isNew bool) tick {
	switch {
	case t.Cron != "":
		return cronTick(t, now)
	case t.Every == 0:
		return tick{}
	case isNew:
		return everyTick(t, now.Add(t.Every), now)
	}
	at := now.Add(rand.N(t.Every))
	return tick{due: at, grid: at}
}

// after returns the run that follows one. What fell due until now is left out.
func (k tick) after(t *dsl.Timing, now time.Time) tick {
	var next tick
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
	}
	next.still = k.still
	return next
}

// everyTick moves a run of Every to an earlier time.
func everyTick(t *dsl.Timing, grid, now time.Time) tick {
	most := min(jitter(t, t.Every), grid.Sub(now))
	return tick{due: grid.Add(-randUpTo(most)), grid: grid}
}

// cronTick returns the schedule's first run after a time, moved to a later one, but not to the run
// that follows.
func cronTick(t *dsl.Timing, after time.Time) tick {
	grid := t.Next(after)
	if grid.IsZero() {
		return tick{}
	}
	between := t.Next(grid).Sub(grid)
	if between <= 0 {
		return tick{due: grid, grid: grid} // it is the last one
	}
	most := min(jitter(t, min(between, 10*mostLate)), between-1)
	return tick{due: grid.Add(randUpTo(most)), grid: grid}
}

// idleTick returns the run of a timer that has idle alone, once its object has changed.
func idleTick(t *dsl.Timing, since time.Time) tick {
	at := since.Add(t.Idle)
	return tick{due: at.Add(randUpTo(jitter(t, min(t.Idle, 10*mostLate)))), grid: at}
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

// struck reports whether the run's time has come.
func (k tick) struck(now time.Time) bool { return !k.due.IsZero() && !now.Before(k.due) }

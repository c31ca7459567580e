// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestRunsAreCountedFromTheGrid holds when the run after one is that a worker takes late.
func TestRunsAreCountedFromTheGrid(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	every := func(jitter time.Duration) *dsl.Timing { return &dsl.Timing{Every: time.Minute, Jitter: jitter} }
	tests := map[string]struct {
		timing *dsl.Timing
		late   time.Duration // how long after the first run's time the worker comes
		// from and to bound the next run, from the first one's place on the grid.
		from, to time.Duration
	}{
		"in time":                     {every(-1), 0, time.Minute, time.Minute},
		"late, but within the period": {every(-1), 59 * time.Second, time.Minute, time.Minute},
		"a whole period late: that one is left out":       {every(-1), time.Minute, 2 * time.Minute, 2 * time.Minute},
		"many periods late":                               {every(-1), 10*time.Minute + time.Second, 11 * time.Minute, 11 * time.Minute},
		"with jitter it comes up to a tenth earlier":      {every(0), 0, 54 * time.Second, time.Minute},
		"with jitter of its own, up to that":              {every(30 * time.Second), 0, 30 * time.Second, time.Minute},
		"but not before the worker that has it comes":     {every(30 * time.Second), 50 * time.Second, 50 * time.Second, time.Minute},
		"one that waits for its object alone has no next": {&dsl.Timing{Idle: time.Minute}, 0, 0, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for range 50 { // jitter is drawn
				k := Tick{due: begin, grid: begin}
				next := k.Next(tt.timing, begin.Add(tt.late))
				if tt.to == 0 {
					if !next.Due().IsZero() {
						t.Fatalf("it runs at %v", next.Due())
					}
					continue
				}
				if after := next.Due().Sub(begin); after < tt.from || after > tt.to {
					t.Fatalf("it runs after %v, want %v to %v", after, tt.from, tt.to)
				}
				if next.grid.Sub(begin)%time.Minute != 0 {
					t.Fatalf("it has left the grid: %v", next.grid.Sub(begin))
				}
			}
		})
	}
}

// TestTheFirstRun holds that what is found at a start is spread, and that what is new has a period before it.
func TestTheFirstRun(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	timing := &dsl.Timing{Every: time.Hour, Jitter: -1}
	if got := firstTick(timing, now, true).Due().Sub(now); got != time.Hour {
		t.Errorf("a new object's timer runs after %v, want an hour", got)
	}
	halves := [2]int{}
	for range 200 {
		after := firstTick(timing, now, false).Due().Sub(now)
		if after < 0 || after >= time.Hour {
			t.Fatalf("it runs after %v", after)
		}
		halves[after/(30*time.Minute)]++
	}
	if halves[0] < 50 || halves[1] < 50 { // fewer come up once in 10^12 times
		t.Errorf("of 200, %v run in each half of the period", halves)
	}
}

// TestIdle holds when a timer with idle fires.
func TestIdle(t *testing.T) {
	begin := time.Unix(1_000_000, 0)
	at := func(s int) time.Time { return begin.Add(time.Duration(s) * time.Second) }
	timing := &dsl.Timing{Idle: time.Minute, Jitter: -1}
	k, changed := firstTick(timing, begin, true).Look(timing, "a", begin)
	if !changed || k.Fires(timing, at(59)) || !k.Fires(timing, at(60)) {
		t.Errorf("changed %v, due %v: want it to fire a minute after it was seen first", changed, k.Due())
	}
	if same, changed := k.Look(timing, "a", at(30)); changed || !same.Fires(timing, at(60)) {
		t.Error("a look at what has not changed puts it off")
	}
	if later, changed := k.Look(timing, "b", at(30)); !changed || later.Fires(timing, at(60)) || !later.Fires(timing, at(90)) {
		t.Error("a change does not begin the rest again")
	}
	own := k.Next(timing, at(60)).Own("b")
	if _, changed := own.Look(timing, "b", at(70)); changed {
		t.Error("what the handler changed itself counts as a change")
	}
}

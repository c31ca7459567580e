// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

var begin = time.Unix(1_000_000, 0)

// at is a time after the beginning.
func at(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

// seconds is the time from the beginning to the next run, -1 when there is none.
func seconds(k Tick) int {
	if k.Due().IsZero() {
		return -1
	}
	return int(k.Due().Sub(begin).Seconds())
}

// TestAPauseIsCountedFromTheEnd holds that a run with a pause comes that long after the last one has ended, however
// long that took, and after its last attempt.
func TestAPauseIsCountedFromTheEnd(t *testing.T) {
	pause := &dsl.Timing{Pause: time.Minute, Jitter: -1}
	k := firstTick(pause, begin, true)
	if got := seconds(k); got != 60 {
		t.Fatalf("the first run of a new object comes after %d s, want 60", got)
	}
	if k = k.Next(pause, at(100)); seconds(k) != 160 {
		t.Errorf("after a run that ended at 100 s the next comes at %d s, want 160", seconds(k))
	}
	if k = k.Ended(pause, at(150)); seconds(k) != 210 {
		t.Errorf("after attempts that ended at 150 s the next comes at %d s, want 210", seconds(k))
	}
	every := &dsl.Timing{Every: time.Minute, Jitter: -1}
	if k := firstTick(every, begin, true).Next(every, at(100)).Ended(every, at(150)); seconds(k) != 120 {
		t.Errorf("with every the next comes at %d s, want 120, which is on the grid", seconds(k))
	}
}

// TestAPauseOfOneThatIsFoundAtAStart holds that runs with a pause are spread, too, and moved to a later time alone.
func TestAPauseOfOneThatIsFoundAtAStart(t *testing.T) {
	pause := &dsl.Timing{Pause: time.Minute}
	found := map[int]bool{}
	for range 50 {
		first := firstTick(pause, begin, false)
		if s := seconds(first); s < 0 || s >= 60 {
			t.Fatalf("the first run comes at %d s", s)
		}
		found[seconds(first)] = true
		if s := seconds(first.Next(pause, begin)); s < 60 || s > 66 {
			t.Fatalf("the second run comes at %d s, want 60 to 66", s)
		}
	}
	if len(found) < 5 {
		t.Errorf("first runs are not spread: %v", found)
	}
}

// TestADelay holds when the first run comes where the author says.
func TestADelay(t *testing.T) {
	tests := map[string]struct {
		timing *dsl.Timing
		delay  time.Duration
		want   int
	}{
		"with every, runs go on from there":             {&dsl.Timing{Every: time.Minute, Jitter: -1}, 10 * time.Second, 10},
		"with no time at all it is now":                 {&dsl.Timing{Every: time.Minute}, 0, 0},
		"with a pause":                                  {&dsl.Timing{Pause: time.Minute, Jitter: -1}, 90 * time.Second, 90},
		"one that rests alone has no time before":       {&dsl.Timing{Idle: time.Minute, Jitter: -1}, time.Hour, -1},
		"with a pause and idle, rest is asked for then": {&dsl.Timing{Pause: time.Minute, Idle: time.Hour, Jitter: -1}, 10 * time.Second, 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := seconds(delayedTick(tt.timing, begin, tt.delay)); got != tt.want {
				t.Errorf("the first run comes at %d s, want %d", got, tt.want)
			}
		})
	}
	every := tests["with every, runs go on from there"].timing
	if got := seconds(delayedTick(every, begin, 10*time.Second).Next(every, at(10))); got != 70 {
		t.Errorf("the second run comes at %d s, want 70", got)
	}
}

// TestADelayWithRest holds that a timer with idle alone waits for both, also when its object changes meanwhile.
func TestADelayWithRest(t *testing.T) {
	idle := &dsl.Timing{Idle: time.Minute, Jitter: -1}
	k, _ := delayedTick(idle, begin, 5*time.Minute).Look(idle, "a", begin)
	if got := seconds(k); got != 300 {
		t.Errorf("it runs at %d s, want 300", got)
	}
	if k, _ = k.Look(idle, "b", at(30)); seconds(k) != 300 {
		t.Errorf("after a change at 30 s it runs at %d s, want 300", seconds(k))
	}
	if k, _ = k.Look(idle, "c", at(290)); seconds(k) != 350 {
		t.Errorf("after a change at 290 s it runs at %d s, want 350", seconds(k))
	}
	if k, _ = k.Own("d").Look(idle, "e", at(310)); seconds(k) != 370 {
		t.Errorf("after a change at 310 s it runs at %d s, want 370", seconds(k))
	}
}

// TestAPauseWithRest holds that a run comes when both have passed, and not a pause later.
func TestAPauseWithRest(t *testing.T) {
	both := &dsl.Timing{Pause: time.Minute, Idle: 90 * time.Second, Jitter: -1}
	k, _ := firstTick(both, begin, true).Look(both, "a", begin)
	if k.Fires(both, at(60)) || !k.Passed(at(60)) {
		t.Fatal("it runs before its object has rested")
	}
	if k = k.Skip(both, at(60)); seconds(k) != 90 || !k.Fires(both, at(90)) {
		t.Fatalf("it runs at %d s, want 90", seconds(k))
	}
	if k = k.Next(both, at(100)); seconds(k) != 160 || !k.Fires(both, at(160)) {
		t.Errorf("it runs again at %d s, want 160", seconds(k))
	}
	every := &dsl.Timing{Every: time.Minute, Idle: 90 * time.Second, Jitter: -1}
	e, _ := firstTick(every, begin, true).Look(every, "a", begin)
	if e = e.Skip(every, at(60)); seconds(e) != 120 {
		t.Errorf("with every it looks again at %d s, want 120", seconds(e))
	}
}

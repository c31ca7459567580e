// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// beats notes when a handler ran, by the object's name.
type beats struct {
	mu    sync.Mutex
	begun time.Time
	at    map[string][]time.Duration
}

// begin starts the count.
func (b *beats) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun, b.at = time.Now(), map[string][]time.Duration{}
}

func (b *beats) handler(then ...dsl.Func) dsl.Func {
	n := 0
	return func(ctx context.Context, r *dsl.Request) error {
		b.mu.Lock()
		name := r.Object.GetName()
		b.at[name] = append(b.at[name], time.Since(b.begun))
		do := dsl.Func(scene.Succeeds)
		if len(then) > 0 {
			do = then[min(n, len(then)-1)]
		}
		n++
		b.mu.Unlock()
		return do(ctx, r)
	}
}

// want compares the beats of web, to the millisecond.
func (b *beats) want(t *testing.T, want ...time.Duration) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	near := cmpopts.EquateApprox(0, 1e6)
	if diff := cmp.Diff(floats(want), floats(b.at["web"]), near, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("runs at %v, want %v", b.at["web"], want)
	}
}

func floats(all []time.Duration) []float64 {
	var out []float64
	for _, d := range all {
		out = append(out, float64(d))
	}
	return out
}

// playTimer plays with one timer handler of web, which is new when the count begins.
func playTimer(t *testing.T, timing dsl.Timing, options []dsl.Option, then []dsl.Func, play func(s *scene.Stage), want ...time.Duration) {
	t.Helper()
	b := &beats{}
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.On([]dsl.Cause{dsl.Timer}, "beat", b.handler(then...), append([]dsl.Option{dsl.At(timing)}, options...)...)
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			b.begin()
			s.Create(scene.Web)
			play(s)
			s.Wrote()
			b.want(t, want...)
		},
	})
}

func TestATimerRunsAtItsInterval(t *testing.T) {
	minute := scene.WithoutJitter(dsl.Timing{Every: time.Minute})
	passes := func(d time.Duration) func(*scene.Stage) { return func(s *scene.Stage) { s.Advance(d) } }
	tests := map[string]struct {
		options []dsl.Option
		then    []dsl.Func
		play    func(*scene.Stage)
		want    []time.Duration
	}{
		"a new object has a whole period before it": {play: passes(59 * time.Second)},
		"it runs each period and writes nothing":    {play: passes(200 * time.Second), want: scene.Seconds(60, 120, 180)},
		"a run that fails is tried again by its back-off, which does not move the next one": {
			then: []dsl.Func{scene.RetriesAfter(10 * time.Second), scene.Succeeds}, play: passes(130 * time.Second), want: scene.Seconds(60, 70, 120),
		},
		"what falls due while it is being tried again is left out": {
			then: []dsl.Func{scene.RetriesAfter(130 * time.Second), scene.Succeeds}, play: passes(250 * time.Second), want: scene.Seconds(60, 190, 240),
		},
		"a run that fails for good is over, and the next one comes": {
			then: []dsl.Func{scene.Fails(dsl.Permanent(scene.ErrAgain))}, play: passes(200 * time.Second), want: scene.Seconds(60, 120, 180),
		},
		"what falls due while it runs is left out": {
			then: []dsl.Func{scene.TakesTime(130 * time.Second), scene.Succeeds}, play: passes(250 * time.Second), want: scene.Seconds(60, 240),
		},
		"a filter is asked each time": {
			options: []dsl.Option{dsl.Label("beat", "yes")},
			play: func(s *scene.Stage) {
				s.Advance(90 * time.Second)
				s.Set("yes", "metadata", "labels", "beat")
				s.Advance(time.Minute)
				s.Set("no", "metadata", "labels", "beat")
				s.Advance(time.Minute)
			},
			want: scene.Seconds(120),
		},
		"one that waits is run again when its time is over": {
			then: []dsl.Func{scene.Fails(dsl.Waiting("rain", 5*time.Second)), scene.Succeeds}, play: passes(130 * time.Second), want: scene.Seconds(60, 65, 120),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			playTimer(t, minute, test.options, test.then, test.play, test.want...)
		})
	}
}

func TestATimerChangesNothingForOtherCauses(t *testing.T) {
	minute := dsl.At(scene.WithoutJitter(dsl.Timing{Every: time.Minute}))
	scene.PlayAll(t, map[string]scene.Scenario{
		"a level-triggered handler may have a timer": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("sync", j.Note("sync"), minute) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("sync create")
				s.Advance(time.Minute)
				s.Called("sync timer")
				s.Resize(2)
				s.Called("sync update")
				s.Advance(time.Minute)
				s.Called("sync timer")
				s.Wrote()
			},
		},
		"a filter that does not match at a tick makes nothing new of the object": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				on := true
				foo.OnReconcile("sync", j.Note("sync"), minute, dsl.When(func(r *dsl.Subject) (bool, error) {
					on = r.Cause != dsl.Timer
					return on, nil
				}))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Hour)
				s.Set("x", "status", "theirs")
				s.Called()
			},
		},
		"one that is failing is not run a second time by its timer, and a change is seen": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("sync", j.Note("sync", scene.RetriesAfter(150*time.Second), scene.Succeeds), minute)
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("sync create")
				s.Advance(149 * time.Second)
				s.Called()
				s.Advance(time.Second)
				s.Called("sync create 2")
				s.Advance(30 * time.Second)
				s.Called("sync timer")
			},
		},
		"so is one whose cause is stored": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made", scene.RetriesAfter(150*time.Second), scene.Succeeds), minute)
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(151 * time.Second)
				s.Called("made create", "made create 2")
				s.Advance(29 * time.Second)
				s.Called("made timer")
			},
		},
		"a tick that failed for good counts no attempts for the next": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Every(time.Minute, "beat", j.Note("beat", scene.Fails(scene.ErrAgain)), minute, dsl.Retries(1), dsl.WithBackoff(time.Second, time.Second))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(125 * time.Second)
				s.Called("beat timer", "beat timer 2", "beat timer", "beat timer 2")
				s.Wrote()
			},
		},
		"an object that is being deleted has no timers": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Every(time.Minute, "beat", j.Note("beat"), minute)
				foo.OnDelete("bye", j.Note("bye", scene.RetriesAfter(10*time.Minute), scene.Succeeds))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Advance(9 * time.Minute)
				s.Called("bye delete")
				s.Advance(time.Hour)
				s.Called("bye delete 2")
				if s.Web() != nil {
					s.T.Error("it is still there")
				}
			},
		},
		"what a tick wants is written": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Every(time.Minute, "beat", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("beat", r.Now.Unix())
					return nil
				}, minute)
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(125 * time.Second)
				s.Wrote("patch foos/status default/web", "patch foos/status default/web")
			},
		},
		"a tick whose write failed is run again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Every(time.Minute, "beat", j.Note("beat", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("beat", r.Now.Unix())
					return nil
				}), minute)
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.FailNext("patch", scene.Foos+"/status", errors.New("connection refused"))
				s.Advance(63 * time.Second)
				s.Called("beat timer", "beat timer")
				s.Wrote("patch foos/status default/web")
			},
		},
	})
}

// TestTimersOfManyObjectsAreSpreadAndHoldNoGoroutine is law 8 for timers: two thousand of them hold no goroutine, come spread
// over the period, and each in its own.
func TestTimersOfManyObjectsAreSpreadAndHoldNoGoroutine(t *testing.T) {
	const many, periods = 2000, 3
	b := &beats{}
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.Every(time.Minute, "beat", b.handler()) },
		Play: func(s *scene.Stage) {
			for i := range many {
				s.Create(fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "web-%d"}}`, i))
			}
			before := runtime.NumGoroutine()
			b.begin()
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Log = logr.Discard() })
			s.Advance(periods * time.Minute)
			if more := runtime.NumGoroutine() - before; more > 60 {
				s.T.Errorf("%d timers hold %d goroutines", many, more)
			}
			s.Wrote()
			wantSpread(s.T, b, many, periods)
		},
	})
}

// wantSpread checks that runs do not come together (evenly spread, a second has 1.7 of a hundred, and twice that
// where the jitter of two periods meets), and that each object has one in each period.
func wantSpread(t *testing.T, b *beats, many, periods int) {
	t.Helper()
	perSecond := map[int]int{}
	if len(b.at) != many {
		t.Errorf("%d objects have run, want %d", len(b.at), many)
	}
	for name, at := range b.at {
		for i, when := range at {
			perSecond[int(when/time.Second)]++
			latest := at[0] + time.Duration(i)*time.Minute + time.Second
			if early := latest - when; early < 0 || early > 7*time.Second {
				t.Fatalf("%s ran at %v: run %d is not within the jitter", name, at, i)
			}
		}
		if len(at) < periods || at[0] > time.Minute {
			t.Fatalf("%s ran at %v", name, at)
		}
	}
	for second, n := range perSecond {
		if n > many*6/100 {
			t.Errorf("in second %d there are %d runs of %d objects", second, n, many)
		}
	}
}

// TestTimersAreSpreadAgainAfterARestart holds that the runs are spread again, and none is caught up.
func TestTimersAreSpreadAgainAfterARestart(t *testing.T) {
	const many = 300
	b := &beats{}
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.Every(time.Hour, "beat", b.handler()) },
		Play: func(s *scene.Stage) {
			b.begin()
			s.Launch()
			for i := range many {
				s.Create(fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "web-%d"}}`, i))
			}
			s.Advance(30 * time.Minute)
			if len(b.at) > 0 {
				s.T.Errorf("%d new objects ran before their period was over", len(b.at))
			}
			scene.Stop(s)
			s.Advance(5 * time.Hour)
			s.Process.Restart()
			b.begin()
			s.Advance(time.Hour)
			thirds := [3]int{}
			for _, at := range b.at {
				thirds[min(2, int(at[0]/(20*time.Minute)))]++
			}
			if len(b.at) != many || min(thirds[0], thirds[1], thirds[2]) < many/5 {
				s.T.Errorf("of %d objects %d ran, by thirds of the hour %v", many, len(b.at), thirds)
			}
		},
	})
}

// TestTimersLetFreshChangesPass holds that a thousand ticks of one moment hold up no change.
func TestTimersLetFreshChangesPass(t *testing.T) {
	const many = 1000
	var seen time.Time
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Workers = 1
			foo.On([]dsl.Cause{dsl.Timer}, "beat", scene.TakesTime(10*time.Millisecond), dsl.At(scene.WithoutJitter(dsl.Timing{Cron: "0 * * * *"})))
			foo.OnField("spec.size", "sized", func(context.Context, *dsl.Request) error {
				seen = time.Now()
				return nil
			}, dsl.NoOld())
		},
		Play: func(s *scene.Stage) {
			s.Begin()
			for i := range many {
				s.Create(fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "web-%d"}}`, i))
			}
			s.Advance(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Second)))
			changed := time.Now()
			s.Resize(2)
			s.Advance(time.Minute)
			if wait := seen.Sub(changed); wait < 0 || wait > 100*time.Millisecond {
				s.T.Errorf("a change waited %v behind the ticks", wait)
			}
		},
	})
}

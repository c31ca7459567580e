// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// runsAgain is a handler that asks to be run again, and ends with an error.
func runsAgain(after time.Duration, err error) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.RunAgain(after)
		return err
	}
}

// TestAHandlerRunsAgainWhenItAsks holds that a handler which has succeeded is run again when it asked for that.
func TestAHandlerRunsAgainWhenItAsks(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a handler that asks for it is run again, until it does not, and nothing is written": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Minute, nil), runsAgain(time.Hour, nil), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(59 * time.Second)
			s.Called()
			s.Advance(time.Second)
			s.Called("polls again")
			s.Advance(time.Hour)
			s.Called("polls again")
			s.Advance(24 * time.Hour)
			s.Called()
			s.Wrote()
		}},
		"what an earlier run asked for counts no more": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Minute, nil), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("polls update")
			s.Advance(time.Hour)
			s.Called()
		}},
		"of several times the least counts": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", func(_ context.Context, r *dsl.Request) error {
				r.RunAgain(time.Hour)
				r.RunAgain(time.Minute)
				r.RunAgain(2 * time.Minute)
				return nil
			}, scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("polls again")
		}},
		"one that is edge-triggered runs again, too, and what it handled is remembered": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made", runsAgain(time.Minute, nil), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("made again")
			s.Process.Restart()
			s.Called()
			s.Wrote()
		}},
		"each handler has a time of its own": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("first", j.Note("first", runsAgain(time.Minute, nil), scene.Succeeds))
			foo.OnReconcile("second", j.Note("second", runsAgain(2*time.Minute, nil), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("first again")
			s.Advance(time.Minute)
			s.Called("second again")
		}},
		"a sub-handler asks for its handler": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("whole", j.Note("whole", func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", runsAgain(time.Minute, nil))
				return nil
			}, scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("whole again")
		}},
		"a schedule runs again between its times": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Schedule(dsl.Timing{Cron: "@daily", Jitter: -1}, "tidy", j.Note("tidy", runsAgain(time.Minute, nil), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Advance(24 * time.Hour)
			s.Called("tidy timer")
			s.Advance(time.Minute)
			s.Called("tidy again")
			s.Advance(time.Hour)
			s.Called()
		}},
		"a new process runs level-triggered handlers anyhow, and others when there is something to do": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("level", j.Note("level", runsAgain(time.Minute, nil), scene.Succeeds))
			foo.OnCreate("edge", j.Note("edge", runsAgain(time.Minute, nil), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Restart()
			s.Called("level resume")
			s.Advance(time.Hour)
			s.Called()
		}},
		"one that writes now and then goes on": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			n := int64(0)
			foo.OnReconcile("beats", j.Note("beats", func(_ context.Context, r *dsl.Request) error {
				n++
				r.Patch.SetStatus("n", n)
				r.RunAgain(time.Second)
				return nil
			}))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Hour)
			if n := s.Len(); n < 3500 || n > 3601 {
				s.T.Errorf("%d runs in an hour", n)
			}
		}},
	})
}

// TestAHandlerThatFailsOrWaitsRunsAgainWhenItAsks holds how the time that a handler asks for goes with its back-off and its
// filter.
func TestAHandlerThatFailsOrWaitsRunsAgainWhenItAsks(t *testing.T) {
	waits := dsl.Waiting("a bus", time.Hour)
	scene.PlayAll(t, map[string]scene.Scenario{
		"a run that was asked for and fails is tried again by its back-off": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Minute, nil), scene.Fails(scene.ErrAgain), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("polls again")
			s.Advance(2 * time.Second)
			s.Called("polls again 2")
		}},
		"one that changes what it looks at and fails waits for its back-off": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Minute, nil), func(_ context.Context, r *dsl.Request) error {
				r.Patch.Label("tried", "yes")
				return scene.ErrAgain
			}, scene.Succeeds), dsl.WithBackoff(time.Minute, time.Minute))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("polls again")
			s.Advance(30 * time.Second)
			s.Called()
			s.Advance(time.Minute)
			s.Called("polls again 2")
		}},
		"one that fails runs at the time it asked for, and that is no attempt when it fails again": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Minute, scene.ErrAgain), scene.Fails(scene.ErrAgain), scene.Succeeds), dsl.WithBackoff(time.Hour, time.Hour))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("polls create 2")
			s.Advance(30 * time.Minute)
			s.Called()
			s.Advance(45 * time.Minute)
			s.Called("polls create 2")
		}},
		"one that waits, and one that has failed for good, run at the time they asked for": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("waits", j.Note("waits", runsAgain(time.Minute, waits), scene.Succeeds))
			foo.OnReconcile("broken", j.Note("broken", runsAgain(time.Minute, dsl.Permanent(scene.ErrAgain)), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Minute)
			s.Called("waits create", "broken again")
			s.Advance(24 * time.Hour)
			s.Called()
		}},
		"one whose filter does not hold at the time runs when it holds again": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Minute, nil), scene.Succeeds), dsl.LabelAbsent("off"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("yes", "metadata", "labels", "off")
			s.Advance(time.Hour)
			s.Called()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			s.Called("polls update")
		}},
	})
}

// TestAHandlerThatAsksToRunAtOnceIsSlowedDown holds that a handler waits a second each time after it has asked to run at
// once ten times in a row. A handler with progress does not wait.
func TestAHandlerThatAsksToRunAtOnceIsSlowedDown(t *testing.T) {
	// atMost calls a handler a thousand times at most: virtual time stands still while handlers run.
	atMost := func(then dsl.Func) dsl.Func {
		n := 0
		return func(ctx context.Context, r *dsl.Request) error {
			if n++; n > 1000 {
				return nil
			}
			return then(ctx, r)
		}
	}
	// slowed plays a minute and a half. In the middle somebody else changes something.
	slowed := func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		for range 2 {
			s.Settle()
			s.Advance(500 * time.Millisecond)
			if n := len(s.Take()); n != 11 {
				s.T.Errorf("%d runs at first, want 11", n)
			}
			s.Advance(40 * time.Second)
			if n := len(s.Take()); n < 38 || n > 41 {
				s.T.Errorf("%d runs in 40 seconds", n)
			}
			s.Set("yes", "metadata", "labels", "changed")
		}
		s.Settle()
		if got := s.LoopEvents(); len(got) != 1 || !strings.Contains(got[0].Note, "Handler asks ") {
			s.T.Errorf("Events %+v", got)
		}
	}
	always := func(then dsl.Func) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("asks", j.Note("asks", atMost(then))) }
	}
	writes := func(ask dsl.Func) dsl.Func {
		n := int64(0)
		return func(ctx context.Context, r *dsl.Request) error {
			n++
			r.Patch.SetStatus("n", n)
			<-time.After(time.Millisecond) // two Events of an object at the same time have the same name
			return ask(ctx, r)
		}
	}
	// paced holds that a handler runs with this time between its runs, and that no Event says that it is too fast.
	paced := func(between time.Duration) func(*scene.Stage) {
		return func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Minute)
			if n, most := s.Len(), int(time.Minute/between); n < most-most/50 || n > most+1 {
				s.T.Errorf("%d runs in a minute, want %d", n, most)
			}
			s.Settle()
			if got := s.LoopEvents(); len(got) > 0 {
				s.T.Errorf("Events %+v", got)
			}
		}
	}
	// through holds that a handler is through without a wait, and that nothing is said of it.
	through := func(line string) func(*scene.Stage) {
		return func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Millisecond)
			if calls := s.Take(); len(calls) < 30 || calls[len(calls)-1] != line {
				s.T.Errorf("it was called %d times: %v", len(calls), calls)
			}
			if got := s.LoopEvents(); len(got) > 0 {
				s.T.Errorf("Events %+v", got)
			}
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that succeeds":                   {Operator: always(runsAgain(0, nil)), Play: slowed},
		"one that asks for a moment later":    {Operator: always(runsAgain(time.Millisecond, nil)), Play: slowed},
		"one that fails and asks for it":      {Operator: always(scene.Fails(dsl.Temporary(scene.ErrAgain, 0))), Play: slowed},
		"one that does both":                  {Operator: always(runsAgain(0, dsl.Temporary(scene.ErrAgain, time.Hour))), Play: slowed},
		"one that writes each time":           {Operator: always(writes(runsAgain(time.Millisecond, nil))), Play: slowed},
		"one that writes each time and fails": {Operator: always(writes(scene.Fails(dsl.Temporary(scene.ErrAgain, 0)))), Play: slowed},
		"one that has a back-off of almost none": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("asks", j.Note("asks", atMost(scene.Fails(scene.ErrAgain))), dsl.WithBackoff(time.Millisecond, time.Millisecond))
		}, Play: slowed},
		"one whose sub-handler asks": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			part := atMost(scene.Fails(dsl.Temporary(scene.ErrAgain, 0)))
			foo.OnReconcile("asks", func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", j.Note("part", part))
				return nil
			})
		}, Play: slowed},
		"one that asks for a tenth of a second keeps this pace":              {Operator: always(runsAgain(100*time.Millisecond, nil)), Play: paced(100 * time.Millisecond)},
		"one that fails and asks for two tenths of a second keeps this pace": {Operator: always(scene.Fails(dsl.Temporary(scene.ErrAgain, 200*time.Millisecond))), Play: paced(200 * time.Millisecond)},
		"one that asks for less than a tenth of a second": {Operator: always(runsAgain(99*time.Millisecond, nil)), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Minute)
			if n := s.Len(); n < 65 || n > 71 || len(s.LoopEvents()) != 1 {
				s.T.Errorf("%d runs in a minute, want eleven and one in each second; Events %+v", n, s.LoopEvents())
			}
		}},
		"one whose row has an end begins another row": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			n := 0
			foo.OnReconcile("asks", j.Note("asks", func(_ context.Context, r *dsl.Request) error {
				if n++; n%10 == 0 {
					r.RunAgain(time.Minute)
				} else {
					r.RunAgain(0)
				}
				return nil
			}))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(10*time.Minute + time.Second)
			if n := s.Len(); n != 110 || len(s.LoopEvents()) > 0 {
				s.T.Errorf("%d runs in ten minutes; Events %+v", n, s.LoopEvents())
			}
		}},
		"one that finishes one of its thirty sub-handlers in each run": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("asks", func(_ context.Context, r *dsl.Request) error {
				done := false
				for i := range 30 {
					r.Handle(fmt.Sprintf("part-%02d", i), func(_ context.Context, r *dsl.Request) error {
						if done {
							return dsl.Temporary(scene.ErrAgain, 0)
						}
						done = true
						j.Add(r.Handler)
						return nil
					})
				}
				return nil
			})
		}, Play: through("asks/part-29")},
		"a machine that puts something on the object in each of its thirty states": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			m := dsl.Machine{}
			for i := range 31 {
				name := fmt.Sprintf("S%02d", i)
				m.States = append(m.States, dsl.State{Name: name, Enter: func(_ context.Context, r *dsl.Request) error {
					j.Add(name)
					r.Patch.Label("state", name)
					return nil
				}, Transitions: []dsl.Transition{{To: fmt.Sprintf("S%02d", i+1)}}})
			}
			m.States[30].Transitions, m.States[30].Terminal = nil, true
			foo.Machine(m)
		}, Play: through("S30")},
	})
}

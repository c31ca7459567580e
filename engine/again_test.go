// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// again is a handler that asks to be run again, and ends with an error.
func again(after time.Duration, err error) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.RunAgain(after)
		return err
	}
}

// TestRunAgain holds that a handler which has succeeded is run again when it asked for that.
func TestRunAgain(t *testing.T) {
	waits := dsl.Waiting("a bus", time.Hour)
	scenarios(t, map[string]scenario{
		"a handler that asks for it is run again, until it does not, and nothing is written": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", again(time.Minute, nil), again(time.Hour, nil), succeeds))
		}, func(s *stage) {
			s.begin()
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
		"what an earlier run asked for counts no more": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", again(time.Minute, nil), succeeds))
		}, func(s *stage) {
			s.begin()
			s.size(2)
			s.Called("polls update")
			s.Advance(time.Hour)
			s.Called()
		}},
		"of several times the least counts": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", func(_ ctx, r *dsl.Request) error {
				r.RunAgain(time.Hour)
				r.RunAgain(time.Minute)
				r.RunAgain(2 * time.Minute)
				return nil
			}, succeeds))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			s.Called("polls again")
		}},
		"one that is edge-triggered runs again, too, and what it handled is remembered": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("made", j.Note("made", again(time.Minute, nil), succeeds))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			s.Called("made again")
			s.Process.Restart()
			s.Called()
			s.Wrote()
		}},
		"a run that was asked for and fails is tried again by its back-off": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", again(time.Minute, nil), fails(errAgain), succeeds))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			s.Called("polls again")
			s.Advance(2 * time.Second)
			s.Called("polls again 2")
		}},
		"one that changes what it looks at and fails waits for its back-off": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", again(time.Minute, nil), func(_ ctx, r *dsl.Request) error {
				r.Patch.Label("tried", "yes")
				return errAgain
			}, succeeds), dsl.WithBackoff(time.Minute, time.Minute))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			s.Called("polls again")
			s.Advance(30 * time.Second)
			s.Called()
			s.Advance(time.Minute)
			s.Called("polls again 2")
		}},
		"one that fails runs at the time it asked for, and that is no attempt when it fails again": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", again(time.Minute, errAgain), fails(errAgain), succeeds), dsl.WithBackoff(time.Hour, time.Hour))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			s.Called("polls create 2")
			s.Advance(30 * time.Minute)
			s.Called()
			s.Advance(45 * time.Minute)
			s.Called("polls create 2")
		}},
		"one that waits, and one that has failed for good, run at the time they asked for": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("waits", j.Note("waits", again(time.Minute, waits), succeeds))
			foo.OnReconcile("broken", j.Note("broken", again(time.Minute, dsl.Permanent(errAgain)), succeeds))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			s.Called("waits create", "broken again")
			s.Advance(24 * time.Hour)
			s.Called()
		}},
		"one whose filter does not hold at the time runs when it holds again": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", again(time.Minute, nil), succeeds), dsl.LabelAbsent("off"))
		}, func(s *stage) {
			s.begin()
			s.set("yes", "metadata", "labels", "off")
			s.Advance(time.Hour)
			s.Called()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			s.Called("polls update")
		}},
		"each handler has a time of its own": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("first", j.Note("first", again(time.Minute, nil), succeeds))
			foo.OnReconcile("second", j.Note("second", again(2*time.Minute, nil), succeeds))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			s.Called("first again")
			s.Advance(time.Minute)
			s.Called("second again")
		}},
		"a sub-handler asks for its handler": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("whole", j.Note("whole", func(_ ctx, r *dsl.Request) error {
				r.Handle("part", again(time.Minute, nil))
				return nil
			}, succeeds))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Minute)
			s.Called("whole again")
		}},
		"a schedule runs again between its times": {func(foo *dsl.Resource, j *journal) {
			foo.Schedule(dsl.Timing{Cron: "@daily", Jitter: -1}, "tidy", j.Note("tidy", again(time.Minute, nil), succeeds))
		}, func(s *stage) {
			s.Launch()
			s.Advance(24 * time.Hour)
			s.Called("tidy timer")
			s.Advance(time.Minute)
			s.Called("tidy again")
			s.Advance(time.Hour)
			s.Called()
		}},
		"a new process runs level-triggered handlers anyhow, and others when there is something to do": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("level", j.Note("level", again(time.Minute, nil), succeeds))
			foo.OnCreate("edge", j.Note("edge", again(time.Minute, nil), succeeds))
		}, func(s *stage) {
			s.begin()
			s.Process.Restart()
			s.Called("level resume")
			s.Advance(time.Hour)
			s.Called()
		}},
		"one that writes now and then goes on": {func(foo *dsl.Resource, j *journal) {
			n := int64(0)
			foo.OnReconcile("beats", j.Note("beats", func(_ ctx, r *dsl.Request) error {
				n++
				r.Patch.SetStatus("n", n)
				r.RunAgain(time.Second)
				return nil
			}))
		}, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Hour)
			if n := s.Len(); n < 3500 || n > 3601 {
				s.t.Errorf("%d runs in an hour", n)
			}
		}},
	})
}

// TestWhoAsksToRunAtOnce holds that a handler waits a second each time after it has asked to run at once ten times in a row. A
// handler with progress does not wait.
func TestWhoAsksToRunAtOnce(t *testing.T) {
	// atMost calls a handler a thousand times at most: virtual time stands still while handlers run.
	atMost := func(then dsl.Func) dsl.Func {
		n := 0
		return func(ctx ctx, r *dsl.Request) error {
			if n++; n > 1000 {
				return nil
			}
			return then(ctx, r)
		}
	}
	// slowed plays a minute and a half. In the middle somebody else changes something.
	slowed := func(s *stage) {
		s.Launch()
		s.Create(web)
		for range 2 {
			s.Settle()
			s.Advance(500 * time.Millisecond)
			if n := len(s.Take()); n != 11 {
				s.t.Errorf("%d runs at first, want 11", n)
			}
			s.Advance(40 * time.Second)
			if n := len(s.Take()); n < 38 || n > 41 {
				s.t.Errorf("%d runs in 40 seconds", n)
			}
			s.set("yes", "metadata", "labels", "changed")
		}
		s.Settle()
		if got := s.loops(); len(got) != 1 || !strings.Contains(got[0].Note, "Handler asks ") {
			s.t.Errorf("Events %+v", got)
		}
	}
	always := func(then dsl.Func) func(*dsl.Resource, *journal) {
		return func(foo *dsl.Resource, j *journal) { foo.OnReconcile("asks", j.Note("asks", atMost(then))) }
	}
	writes := func(ask dsl.Func) dsl.Func {
		n := int64(0)
		return func(ctx ctx, r *dsl.Request) error {
			n++
			r.Patch.SetStatus("n", n)
			<-time.After(time.Millisecond) // two Events of an object at the same time have the same name
			return ask(ctx, r)
		}
	}
	// paced holds that a handler runs with this time between its runs, and that no Event says that it is too fast.
	paced := func(between time.Duration) func(*stage) {
		return func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Minute)
			if n, most := s.Len(), int(time.Minute/between); n < most-most/50 || n > most+1 {
				s.t.Errorf("%d runs in a minute, want %d", n, most)
			}
			s.Settle()
			if got := s.loops(); len(got) > 0 {
				s.t.Errorf("Events %+v", got)
			}
		}
	}
	// through holds that a handler is through without a wait, and that nothing is said of it.
	through := func(line string) func(*stage) {
		return func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Millisecond)
			if calls := s.Take(); len(calls) < 30 || calls[len(calls)-1] != line {
				s.t.Errorf("it was called %d times: %v", len(calls), calls)
			}
			if got := s.loops(); len(got) > 0 {
				s.t.Errorf("Events %+v", got)
			}
		}
	}
	scenarios(t, map[string]scenario{
		"one that succeeds":                   {always(again(0, nil)), slowed},
		"one that asks for a moment later":    {always(again(time.Millisecond, nil)), slowed},
		"one that fails and asks for it":      {always(fails(dsl.Temporary(errAgain, 0))), slowed},
		"one that does both":                  {always(again(0, dsl.Temporary(errAgain, time.Hour))), slowed},
		"one that writes each time":           {always(writes(again(time.Millisecond, nil))), slowed},
		"one that writes each time and fails": {always(writes(fails(dsl.Temporary(errAgain, 0)))), slowed},
		"one that has a back-off of almost none": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("asks", j.Note("asks", atMost(fails(errAgain))), dsl.WithBackoff(time.Millisecond, time.Millisecond))
		}, slowed},
		"one whose sub-handler asks": {func(foo *dsl.Resource, j *journal) {
			part := atMost(fails(dsl.Temporary(errAgain, 0)))
			foo.OnReconcile("asks", func(_ ctx, r *dsl.Request) error {
				r.Handle("part", j.Note("part", part))
				return nil
			})
		}, slowed},
		"one that asks for a tenth of a second keeps this pace":              {always(again(100*time.Millisecond, nil)), paced(100 * time.Millisecond)},
		"one that fails and asks for two tenths of a second keeps this pace": {always(fails(dsl.Temporary(errAgain, 200*time.Millisecond))), paced(200 * time.Millisecond)},
		"one that asks for less than a tenth of a second": {always(again(99*time.Millisecond, nil)), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Minute)
			if n := s.Len(); n < 65 || n > 71 || len(s.loops()) != 1 {
				s.t.Errorf("%d runs in a minute, want eleven and one in each second; Events %+v", n, s.loops())
			}
		}},
		"one whose row has an end begins another row": {func(foo *dsl.Resource, j *journal) {
			n := 0
			foo.OnReconcile("asks", j.Note("asks", func(_ ctx, r *dsl.Request) error {
				if n++; n%10 == 0 {
					r.RunAgain(time.Minute)
				} else {
					r.RunAgain(0)
				}
				return nil
			}))
		}, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(10*time.Minute + time.Second)
			if n := s.Len(); n != 110 || len(s.loops()) > 0 {
				s.t.Errorf("%d runs in ten minutes; Events %+v", n, s.loops())
			}
		}},
		"one that finishes one of its thirty sub-handlers in each run": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("asks", func(_ ctx, r *dsl.Request) error {
				done := false
				for i := range 30 {
					r.Handle(fmt.Sprintf("part-%02d", i), func(_ ctx, r *dsl.Request) error {
						if done {
							return dsl.Temporary(errAgain, 0)
						}
						done = true
						j.Add(r.Handler)
						return nil
					})
				}
				return nil
			})
		}, through("asks/part-29")},
		"a machine that puts something on the object in each of its thirty states": {func(foo *dsl.Resource, j *journal) {
			m := dsl.Machine{}
			for i := range 31 {
				name := fmt.Sprintf("S%02d", i)
				m.States = append(m.States, dsl.State{Name: name, Enter: func(_ ctx, r *dsl.Request) error {
					j.Add(name)
					r.Patch.Label("state", name)
					return nil
				}, Transitions: []dsl.Transition{{To: fmt.Sprintf("S%02d", i+1)}}})
			}
			m.States[30].Transitions, m.States[30].Terminal = nil, true
			foo.Machine(m)
		}, through("S30")},
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
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
		"who asks for it at once and writes each time is stopped as one that loops": {func(foo *dsl.Resource, j *journal) {
			n := int64(0)
			foo.OnReconcile("turns", j.Note("turns", func(_ ctx, r *dsl.Request) error {
				n++
				r.Patch.SetStatus("n", n)
				r.RunAgain(0)
				return nil
			}))
		}, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Second)
			if n := s.Len(); n < 100 || n > 400 {
				s.t.Errorf("%d runs in a second", n)
			}
			if events := s.Events(); len(events) != 1 || events[0].Reason != "Looping" {
				s.t.Errorf("events %+v", events)
			}
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

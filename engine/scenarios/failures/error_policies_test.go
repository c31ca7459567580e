// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// writesAndFails sets a field of the status and fails.
func writesAndFails(_ context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("tried", true)
	return scene.ErrAgain
}

// TestAnIgnoredErrorCountsAsSuccess holds that they count as success in all that follows from one.
func TestAnIgnoredErrorCountsAsSuccess(t *testing.T) {
	ignore := dsl.Errors(dsl.ErrorsIgnore)
	scene.PlayAll(t, map[string]scene.Scenario{
		"the handler does not run again, not even after a restart, and what comes after it does": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("vain", j.Note("vain", writesAndFails), ignore)
				foo.OnCreate("next", j.Note("next"), dsl.After("vain"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("vain create", "next create")
				if status, _ := s.Web().Object["status"].(map[string]any); status["tried"] != true {
					s.T.Errorf("what it wrote before it failed is %v", status)
				}
				s.Process.Restart()
				s.Called()
				if events := s.Events(); len(events) > 0 {
					s.T.Errorf("events %+v", events)
				}
			},
		},
		"so it is where it panics": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.Panics), ignore)
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("vain create")
			},
		},
		"a deletion goes on": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("farewell", j.Note("farewell", scene.Fails(scene.ErrAgain)), ignore)
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("farewell delete")
				if s.Web() != nil {
					s.T.Error("the object is held")
				}
			},
		},
		"a change has it run as after a success": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("vain", j.Note("vain", scene.Fails(scene.ErrAgain)), ignore)
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("vain update")
				s.Advance(time.Hour)
				s.Resize(3)
				s.Called("vain update")
			},
		},
		"an error that says when it passes is no such error": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.RetriesAfter(time.Minute)), ignore, dsl.Retries(1))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("vain create", "vain create 2")
			},
		},
		"errors that fail are not tried again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.Fails(scene.ErrAgain)), dsl.Errors(dsl.ErrorsFail))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("vain create")
				if events := s.Events(); len(events) != 1 || events[0].Reason != "HandlerFailed" {
					s.T.Errorf("events %+v", events)
				}
			},
		},
	})
}

// TestAllAttemptsShareTheDeadlineOfTheirHandler holds that all attempts share it, in this process and the next.
func TestAllAttemptsShareTheDeadlineOfTheirHandler(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"attempts end when the next one would begin after it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("vain", j.Note("vain", scene.RetriesAfter(20*time.Second)), dsl.Deadline(time.Minute))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(41 * time.Second)
				s.Called("vain create", "vain create 2", "vain create 3")
				events := s.Events()
				if len(events) != 1 || events[0].Reason != "HandlerFailed" || !strings.Contains(events[0].Note, "after the deadline (1m0s)") {
					s.T.Errorf("events %+v", events)
				}
				s.Advance(time.Hour)
				s.Called()
				s.Resize(2)
				s.Called("vain update")
			},
		},
		"an attempt that runs is ended by it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("slow", j.Note("slow", func(ctx context.Context, _ *dsl.Request) error {
					began := time.Now()
					<-ctx.Done()
					j.Add("ended after " + time.Since(began).String())
					return ctx.Err()
				}), dsl.Deadline(time.Minute))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("slow create", "ended after 1m0s")
			},
		},
		"waiting for others counts, and the deletion is let go then": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("farewell", j.Note("farewell", func(context.Context, *dsl.Request) error {
					return dsl.Waiting("the children", time.Hour)
				}), dsl.Deadline(time.Minute), dsl.Release())
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("farewell delete")
				s.Advance(59 * time.Second)
				if s.Web() == nil {
					s.T.Fatal("the object is gone before the deadline")
				}
				s.Advance(2 * time.Second)
				s.Called()
				if s.Web() != nil {
					s.T.Error("the object is held after the deadline")
				}
			},
		},
		"a restart gives no more time to one that waits for others": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("farewell", j.Note("farewell", func(context.Context, *dsl.Request) error {
					return dsl.Waiting("the children", time.Hour)
				}), dsl.Deadline(time.Minute), dsl.Release())
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("farewell delete")
				s.Advance(30 * time.Second)
				s.Process.Kill()
				s.Launch()
				s.Called("farewell delete")
				s.Advance(31 * time.Second)
				if s.Web() != nil {
					s.T.Error("the object is held after the deadline")
				}
			},
		},
		"a restart gives no more time to one that is tried again soon": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("farewell", scene.RetriesAfter(2*time.Second), dsl.Deadline(time.Minute), dsl.Release())
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Advance(30 * time.Second)
				s.Process.Kill()
				s.Launch()
				s.Advance(31 * time.Second)
				if s.Web() != nil {
					s.T.Error("the object is held after the deadline")
				}
			},
		},
		"a restart gives no more time": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("vain", j.Note("vain", scene.RetriesAfter(40*time.Second)), dsl.Deadline(time.Minute))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("vain create")
				s.Advance(time.Second)
				s.Process.Kill()
				s.Advance(2 * time.Minute)
				s.Launch()
				s.Called()
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "the deadline (1m0s) passed: not yet") {
					s.T.Errorf("events %+v", events)
				}
			},
		},
	})
}

// TestADeletionIsResumedByHandlersThatSaySo holds that only handlers that say so hear of it, once in a process.
func TestADeletionIsResumedByHandlersThatSaySo(t *testing.T) {
	held := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnResume("back", j.Note("back"))
		n := 0
		foo.OnResume("late", j.Note("late", func(context.Context, *dsl.Request) error {
			if n++; n == 1 {
				return dsl.Temporary(errors.New("not yet"), time.Second)
			}
			return nil
		}), dsl.Deleted())
		foo.OnDelete("farewell", scene.RetriesAfter(time.Hour))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object that is found being deleted": {Operator: held, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called()
			s.Process.Restart()
			s.Called("late resume")
			s.Forget()
			s.Advance(2 * time.Second)
			s.Called("late resume 2")
			s.Set("x", "status", "theirs")
			s.Called()
			s.Wrote()
		}},
		"one that lives": {Operator: held, Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Restart()
			s.Called("back resume", "late resume")
			s.Remove()
			s.Advance(time.Minute)
			s.Called()
		}},
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// writesAndFails sets a field of the status and fails.
func writesAndFails(_ context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("tried", true)
	return errAgain
}

func panics(context.Context, *dsl.Request) error { panic("nil map") }

// TestErrorsThatAreIgnored holds that they count as success in all that follows from one.
func TestErrorsThatAreIgnored(t *testing.T) {
	ignore := dsl.Errors(dsl.ErrorsIgnore)
	scenarios(t, map[string]scenario{
		"the handler does not run again, not even after a restart, and what comes after it does": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("vain", j.Note("vain", writesAndFails), ignore)
				foo.OnCreate("next", j.Note("next"), dsl.After("vain"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("vain create", "next create")
				if status, _ := s.web().Object["status"].(map[string]any); status["tried"] != true {
					s.t.Errorf("what it wrote before it failed is %v", status)
				}
				s.Process.Restart()
				s.Called()
				if events := s.Events(); len(events) > 0 {
					s.t.Errorf("events %+v", events)
				}
			},
		},
		"so it is where it panics": {
			func(foo *dsl.Resource, j *journal) { foo.OnReconcile("vain", j.Note("vain", panics), ignore) },
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("vain create")
			},
		},
		"a deletion goes on": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("farewell", j.Note("farewell", fails(errAgain)), ignore)
			},
			func(s *stage) {
				s.begin()
				s.remove()
				s.Called("farewell delete")
				if s.web() != nil {
					s.t.Error("the object is held")
				}
			},
		},
		"a change has it run as after a success": {
			func(foo *dsl.Resource, j *journal) { foo.OnUpdate("vain", j.Note("vain", fails(errAgain)), ignore) },
			func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("vain update")
				s.Advance(time.Hour)
				s.size(3)
				s.Called("vain update")
			},
		},
		"an error that says when it passes is no such error": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("vain", j.Note("vain", temporary(time.Minute)), ignore, dsl.Retries(1))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("vain create", "vain create 2")
			},
		},
		"errors that fail are not tried again": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("vain", j.Note("vain", fails(errAgain)), dsl.Errors(dsl.ErrorsFail))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("vain create")
				if events := s.Events(); len(events) != 1 || events[0].Reason != "HandlerFailed" {
					s.t.Errorf("events %+v", events)
				}
			},
		},
	})
}

// TestTheDeadlineOfAHandler holds that all attempts share it, in this process and the next.
func TestTheDeadlineOfAHandler(t *testing.T) {
	scenarios(t, map[string]scenario{
		"attempts end when the next one would begin after it": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("vain", j.Note("vain", temporary(20*time.Second)), dsl.Deadline(time.Minute))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(41 * time.Second)
				s.Called("vain create", "vain create 2", "vain create 3")
				events := s.Events()
				if len(events) != 1 || events[0].Reason != "HandlerFailed" || !strings.Contains(events[0].Note, "after the deadline (1m0s)") {
					s.t.Errorf("events %+v", events)
				}
				s.Advance(time.Hour)
				s.Called()
				s.size(2)
				s.Called("vain update")
			},
		},
		"an attempt that runs is ended by it": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("slow", j.Note("slow", func(ctx context.Context, _ *dsl.Request) error {
					began := time.Now()
					<-ctx.Done()
					j.Add("ended after " + time.Since(began).String())
					return ctx.Err()
				}), dsl.Deadline(time.Minute))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("slow create", "ended after 1m0s")
			},
		},
		"waiting for others counts, and the deletion is let go then": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("farewell", j.Note("farewell", func(context.Context, *dsl.Request) error {
					return dsl.Waiting("the children", time.Hour)
				}), dsl.Deadline(time.Minute), dsl.Release())
			},
			func(s *stage) {
				s.begin()
				s.remove()
				s.Called("farewell delete")
				s.Advance(59 * time.Second)
				if s.web() == nil {
					s.t.Fatal("the object is gone before the deadline")
				}
				s.Advance(2 * time.Second)
				s.Called()
				if s.web() != nil {
					s.t.Error("the object is held after the deadline")
				}
			},
		},
		"a restart gives no more time to one that waits for others": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("farewell", j.Note("farewell", func(context.Context, *dsl.Request) error {
					return dsl.Waiting("the children", time.Hour)
				}), dsl.Deadline(time.Minute), dsl.Release())
			},
			func(s *stage) {
				s.begin()
				s.remove()
				s.Called("farewell delete")
				s.Advance(30 * time.Second)
				s.Process.Kill()
				s.Launch()
				s.Called("farewell delete")
				s.Advance(31 * time.Second)
				if s.web() != nil {
					s.t.Error("the object is held after the deadline")
				}
			},
		},
		"a restart gives no more time to one that is tried again soon": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnDelete("farewell", temporary(2*time.Second), dsl.Deadline(time.Minute), dsl.Release())
			},
			func(s *stage) {
				s.begin()
				s.remove()
				s.Advance(30 * time.Second)
				s.Process.Kill()
				s.Launch()
				s.Advance(31 * time.Second)
				if s.web() != nil {
					s.t.Error("the object is held after the deadline")
				}
			},
		},
		"a restart gives no more time": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("vain", j.Note("vain", temporary(40*time.Second)), dsl.Deadline(time.Minute))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("vain create")
				s.Advance(time.Second)
				s.Process.Kill()
				s.Advance(2 * time.Minute)
				s.Launch()
				s.Called()
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "the deadline (1m0s) passed: not yet") {
					s.t.Errorf("events %+v", events)
				}
			},
		},
	})
}

// TestResumeOfWhatIsBeingDeleted holds that only handlers that say so hear of it, once in a process.
func TestResumeOfWhatIsBeingDeleted(t *testing.T) {
	held := func(foo *dsl.Resource, j *journal) {
		foo.OnResume("back", j.Note("back"))
		n := 0
		foo.OnResume("late", j.Note("late", func(context.Context, *dsl.Request) error {
			if n++; n == 1 {
				return dsl.Temporary(errors.New("not yet"), time.Second)
			}
			return nil
		}), dsl.Deleted())
		foo.OnDelete("farewell", temporary(time.Hour))
	}
	scenarios(t, map[string]scenario{
		"an object that is found being deleted": {held, func(s *stage) {
			s.begin()
			s.remove()
			s.Called()
			s.Process.Restart()
			s.Called("late resume")
			s.Forget()
			s.Advance(2 * time.Second)
			s.Called("late resume 2")
			s.set("x", "status", "theirs")
			s.Called()
			s.Wrote()
		}},
		"one that lives": {held, func(s *stage) {
			s.begin()
			s.Process.Restart()
			s.Called("back resume", "late resume")
			s.remove()
			s.Advance(time.Minute)
			s.Called()
		}},
	})
}

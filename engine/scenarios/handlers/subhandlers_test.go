// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// minute is the error of a sub-handler that is to be tried again a minute later.
var minute = dsl.Temporary(scene.ErrAgain, time.Minute)

// TestEachSubHandlerHasItsOwnProgress holds that each has progress of its own, and that the handler is through when all are.
func TestEachSubHandlerHasItsOwnProgress(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"those that have succeeded do not run again while another one is tried again, and what comes after waits": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{"b": scene.FailsFirst(2, minute)}, nil, "a", "b", "c"))
				foo.OnCreate("next", j.Note("next"), dsl.After("all"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/a create 1", "all/b create 1", "all/c create 1")
				s.Advance(time.Minute)
				s.Called("all/b create 2")
				s.Advance(time.Minute)
				s.Called("all/b create 3", "next create")
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"so it is after a crash, and attempts are counted on": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{"b": scene.FailsFirst(9, minute)}, nil, "a", "b"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/a create 1", "all/b create 1")
				s.Advance(time.Minute)
				s.Called("all/b create 2")
				s.Process.Kill()
				s.Advance(10 * time.Second)
				s.Launch()
				s.Called()
				s.Advance(time.Minute)
				s.Called("all/b create 3")
			},
		},
		"when what the handler looks at changes, all begin again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{"b": scene.Fails(minute)}, nil, "a", "b"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/a create 1", "all/b create 1")
				s.Resize(2)
				s.Called("all/a create 1", "all/b create 1")
			},
		},
	})
}

// TestSubHandlersHaveTheirOwnOptions holds that retries, errors, filters and timeouts are those of each, and that faults are
// its handler's.
func TestSubHandlersHaveTheirOwnOptions(t *testing.T) {
	only := func(name string, options ...dsl.Option) map[string][]dsl.Option {
		return map[string][]dsl.Option{name: options}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that failed for good fails the handler once the others have finished, which say what they come to": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{
					"a": scene.Fails(dsl.Permanent(scene.ErrAgain)),
					"b": scene.FailsFirst(1, minute),
					"c": func(_ context.Context, r *dsl.Request) error { r.Result(3); return nil },
				}, nil, "a", "b", "c"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/a create 1", "all/b create 1", "all/c create 1")
				if events := s.Events(); len(events) > 0 {
					s.T.Errorf("events %+v", events)
				}
				s.Advance(time.Minute)
				s.Called("all/b create 2")
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "sub-handlers failed for good: a: not yet") {
					s.T.Errorf("events %+v", events)
				}
				if diff := cmp.Diff(map[string]any{"all/c": int64(3)}, s.Web().Object["status"]); diff != "" {
					s.T.Errorf("status (-want +got):\n%s", diff)
				}
				s.Resize(2)
				s.Called("all/a update 1", "all/b update 1", "all/c update 1")
			},
		},
		"retries, ignored errors, filters and timeouts are their own": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{
					"retried": scene.Fails(minute), "ignored": scene.Fails(scene.ErrAgain), "slow": func(ctx context.Context, _ *dsl.Request) error { <-ctx.Done(); return ctx.Err() },
					"torn": scene.Panics,
				}, map[string][]dsl.Option{
					"retried": {dsl.Retries(1)}, "ignored": {dsl.Errors(dsl.ErrorsIgnore)}, "slow": {dsl.Timeout(time.Second), dsl.Retries(0)},
					"torn": {dsl.Retries(0)}, "unseen": {dsl.Label("no", "such")}, "also": {dsl.When(func(*dsl.Subject) (bool, error) { return false, nil })},
				}, "retried", "ignored", "slow", "torn", "unseen", "also"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(2 * time.Second)
				s.Called("all/retried create 1", "all/ignored create 1", "all/slow create 1", "all/torn create 1")
				s.Advance(time.Hour)
				s.Called("all/retried create 2")
				events := s.Events()
				if len(events) != 1 || !strings.Contains(events[0].Note, "retried: not yet; slow: the timeout passed (1s): context deadline exceeded; torn: panic: nil map") {
					s.T.Errorf("events %+v", events)
				}
			},
		},
		"what is wrong with them fails the handler for good": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("all", scene.DeclaresSubHandlers(j, nil, only("b", dsl.Field("spec")), "a", "a", "b", "c d"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called()
				events := s.Events()
				if len(events) != 1 || !strings.Contains(events[0].Note, "all/a: the id is used twice") {
					s.T.Errorf("events %+v", events)
				}
			},
		},
	})
}

// TestAHandlerIsThroughWhenItsSubHandlersAre holds what comes before, beside and after them.
func TestAHandlerIsThroughWhenItsSubHandlersAre(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a deletion waits for all of them": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{"a": scene.FailsFirst(1, minute)}, nil, "a", "b"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("all/a delete 1", "all/b delete 1")
				if s.Web() == nil {
					s.T.Fatal("the object is gone")
				}
				s.Advance(time.Minute)
				s.Called("all/a delete 2")
				if s.Web() != nil {
					s.T.Error("the object is held")
				}
			},
		},
		"they may declare more": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				inner := scene.DeclaresSubHandlers(j, map[string]dsl.Func{"x": scene.FailsFirst(1, minute)}, nil, "x", "y")
				foo.OnCreate("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{"a": inner}, nil, "a", "b"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/a create 1", "all/a/x create 1", "all/a/y create 1", "all/b create 1")
				s.Advance(time.Minute)
				s.Called("all/a create 1", "all/a/x create 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"what is to be done then is done once all have succeeded, and its error is the handler's": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				parts := scene.DeclaresSubHandlers(j, map[string]dsl.Func{"a": scene.FailsFirst(1, minute)}, nil, "a", "b")
				then := j.Note("then", scene.Fails(minute), nil)
				foo.OnCreate("all", func(ctx context.Context, r *dsl.Request) error {
					r.Then(then)
					return parts(ctx, r)
				})
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/a create 1", "all/b create 1")
				s.Advance(time.Minute)
				s.Called("all/a create 2", "then create")
				s.Advance(time.Minute)
				s.Called("then create 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"when the handler fails itself, they wait for it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				parts := scene.DeclaresSubHandlers(j, nil, nil, "a")
				own := scene.FailsFirst(1, minute)
				foo.OnCreate("all", func(ctx context.Context, r *dsl.Request) error {
					if err := parts(ctx, r); err != nil {
						return err
					}
					return own(ctx, r)
				})
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called()
				s.Advance(time.Minute)
				s.Called("all/a create 1")
			},
		},
	})
}

// TestTheNumberOfSubHandlersIsLimited holds that their progress is bounded.
func TestTheNumberOfSubHandlersIsLimited(t *testing.T) {
	var names []string
	for i := range dsl.MostSubHandlers + 1 {
		names = append(names, fmt.Sprint("n", i))
	}
	scene.PlayAll(t, map[string]scene.Scenario{"one more than there may be": {
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("all", scene.DeclaresSubHandlers(j, nil, nil, names...))
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called()
			if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "all/n100: there are more than 100") {
				s.T.Errorf("events %+v", events)
			}
		},
	}})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// works is a handler that takes some time, and heeds the end of its own.
func works(d time.Duration) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		select {
		case <-time.After(d):
			r.Result("done")
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestADoneSubHandlerIsNotTakenBack holds that neither the end of their handler's time nor what comes in the end takes back
// what they have done.
func TestADoneSubHandlerIsNotTakenBack(t *testing.T) {
	slow := map[string]dsl.Func{"a": works(4 * time.Second), "b": works(4 * time.Second), "c": works(4 * time.Second)}
	scene.PlayAll(t, map[string]scene.Scenario{
		"when its time is over, those that are through do not run again, and the one that it cut off has lost no attempt": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("all", scene.DeclaresSubHandlers(j, slow, map[string][]dsl.Option{"c": {dsl.Retries(0)}}, "a", "b", "c"), dsl.Timeout(10*time.Second))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("all/a create 1", "all/b create 1", "all/c create 1", "all/c create 1")
				want := map[string]any{"all/a": "done", "all/b": "done", "all/c": "done"}
				if diff := cmp.Diff(want, s.Web().Object["status"]); diff != "" {
					s.T.Errorf("status (-want +got):\n%s", diff)
				}
			},
		},
		"so it is one level deeper": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{"x": scene.DeclaresSubHandlers(j, slow, nil, "a", "b", "c")}, map[string][]dsl.Option{"x": {dsl.Timeout(6 * time.Second)}}, "x"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("all/x create 1", "all/x/a create 1", "all/x/b create 1", "all/x create 2", "all/x/b create 1", "all/x/c create 1",
					"all/x create 3", "all/x/c create 1")
			},
		},
		"when what comes in the end panics, it alone runs again, and nothing that it wanted counts": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				torn := false
				parts := scene.DeclaresSubHandlers(j, map[string]dsl.Func{"a": works(0)}, nil, "a", "b")
				foo.OnCreate("all", func(ctx context.Context, r *dsl.Request) error {
					r.Then(func(ctx context.Context, r *dsl.Request) error {
						if j.Add("then"); !torn {
							torn = true
							r.Patch.SetStatus("torn", true)
							return scene.Panics(ctx, r)
						}
						return nil
					})
					return parts(ctx, r)
				})
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/a create 1", "all/b create 1", "then")
				s.Advance(time.Hour)
				s.Called("then")
				if diff := cmp.Diff(map[string]any{"all/a": "done"}, s.Web().Object["status"]); diff != "" {
					s.T.Errorf("status (-want +got):\n%s", diff)
				}
			},
		},
	})
}

// TestTheLastStepMayDeclareSubHandlers holds that those of the last step are declared until they are through, and others
// fail for good.
func TestTheLastStepMayDeclareSubHandlers(t *testing.T) {
	minute := dsl.Temporary(scene.ErrAgain, time.Minute)
	scene.PlayAll(t, map[string]scene.Scenario{
		"those of the last step": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("all", dsl.Steps(j.Note("first"), scene.DeclaresSubHandlers(j, map[string]dsl.Func{"b": scene.FailsFirst(1, minute)}, nil, "a", "b")))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("first create", "all/a create 1", "all/b create 1")
				s.Advance(time.Minute)
				s.Called("all/b create 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"those of another one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("all", dsl.Steps(scene.DeclaresSubHandlers(j, nil, nil, "a"), j.Note("last")))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called()
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "step 1 of 2: it declares sub-handlers, which only the last step can") {
					s.T.Errorf("events %+v", events)
				}
			},
		},
	})
}

// TestASubHandlerDeclaredTooLateFailsItsHandlerForGood holds that the handler fails for good, for they would not run.
func TestASubHandlerDeclaredTooLateFailsItsHandlerForGood(t *testing.T) {
	late := func(in func(parent *dsl.Request, declare dsl.Func)) scene.Scenario {
		return scene.Scenario{
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("all", func(_ context.Context, r *dsl.Request) error {
					in(r, func(context.Context, *dsl.Request) error { r.Handle("late", j.Note("late")); return nil })
					return nil
				})
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called()
				if events := s.Events(); len(events) != 1 || !strings.Contains(events[0].Note, "declaring sub-handler all/late: the handler has returned") {
					s.T.Errorf("events %+v", events)
				}
			},
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"by a sub-handler with its parent's request": late(func(parent *dsl.Request, declare dsl.Func) { parent.Handle("a", declare) }),
		"by what is done in the end":                 late(func(parent *dsl.Request, declare dsl.Func) { parent.Then(declare) }),
	})
}

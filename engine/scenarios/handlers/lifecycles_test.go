// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// setting is a handler that sets a field of the status to what it sees in another one.
func setting(field, from string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus(field, scene.ValueAt(r.Object, from))
		return nil
	}
}

// threeHandlers declares handlers a, b and c.
func threeHandlers(foo *dsl.Resource, j *kit.Journal, causes ...dsl.Cause) {
	foo.On(causes, "a", j.Note("a", setting("a", "spec.size")))
	foo.On(causes, "b", j.Note("b", setting("b", "status.a")))
	foo.On(causes, "c", j.Note("c", setting("c", "status.b")))
}

// TestHandlersMayRunOneByOne holds which handlers run in one reconcile where each of them has a reconcile of its own.
func TestHandlersMayRunOneByOne(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"one by one, each has a write of its own, and sees those before it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Lifecycle = dsl.OneByOne
				threeHandlers(foo, j, dsl.Reconcile)
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("a create", "b create", "c create")
				s.Wrote("patch foos/status default/web", "patch foos/status default/web", "patch foos/status default/web")
				s.Resize(2)
				s.Called("a update", "b update", "c update")
				if got := scene.ValueAt(s.Web(), "status.c"); got != int64(2) {
					s.T.Errorf("status.c is %v", got)
				}
				s.Forget()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			},
		},
		"together they have one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { threeHandlers(foo, j, dsl.Reconcile) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("a create", "b create", "c create")
				s.Wrote("patch foos/status default/web")
			},
		},
		"one by one over a crash, none is left out and none is repeated that was written": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Lifecycle = dsl.OneByOne
				foo.OnCreate("a", j.Note("a", setting("a", "spec.size")))
				foo.OnCreate("b", j.Note("b", scene.Fails(dsl.Temporary(scene.ErrAgain, time.Minute)), nil))
				foo.OnCreate("c", j.Note("c", setting("c", "spec.size")))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("a create", "b create", "c create")
				s.Advance(10 * time.Second)
				s.Process.Kill()
				s.Launch()
				s.Advance(time.Minute)
				s.Called("b create 2")
			},
		},
		"one that waits keeps only those back that come after it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Lifecycle = dsl.OneByOne
				foo.OnReconcile("a", j.Note("a", scene.Fails(dsl.Temporary(scene.ErrAgain, time.Minute)), nil))
				foo.OnReconcile("b", j.Note("b"), dsl.After("a"))
				foo.OnReconcile("c", j.Note("c"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("a create", "c create")
				s.Advance(time.Minute)
				s.Called("a create 2", "b create")
			},
		},
		"a deletion waits for all of them": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Lifecycle = dsl.OneByOne
				foo.OnDelete("a", j.Note("a"))
				foo.OnDelete("b", j.Note("b"))
			},
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("a delete", "b delete")
				if s.Web() != nil {
					s.T.Error("the object is held")
				}
			},
		},
		"timers, events and children reach each of them": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Lifecycle = dsl.OneByOne
				foo.Owns(scene.Deployments)
				foo.OnEvent("a", j.Note("a"))
				foo.OnEvent("b", j.Note("b"))
				foo.OnReconcile("c", j.Note("c", scene.KeepsDeployment))
				foo.OnChild("d", j.Note("d"))
				foo.Every(time.Hour, "e", j.Note("e"), dsl.InitialDelay(time.Minute))
				foo.Every(time.Hour, "f", j.Note("f"), dsl.InitialDelay(time.Minute))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("a event", "b event", "c create", "d child")
				s.Delete(scene.Deployments, "default", "web")
				s.Called("c child", "d child")
				s.Advance(time.Minute)
				s.CalledInAnyOrder("e timer", "f timer")
			},
		},
	})
}

// TestALifecycleChoosesTheHandlersOfAPass holds which handlers run in one reconcile, and in which order.
func TestALifecycleChoosesTheHandlersOfAPass(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a function chooses, and orders; what it leaves out comes later": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Lifecycle = func(due []dsl.Due) []dsl.Due {
					slices.Reverse(due)
					return due[:min(2, len(due))]
				}
				threeHandlers(foo, j, dsl.Reconcile)
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("c create", "b create", "a create")
				s.Wrote("patch foos/status default/web")
			},
		},
		"it knows why they run, and how often they have": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Lifecycle = func(due []dsl.Due) []dsl.Due { // kopf's asap: those that were tried least come first
					slices.SortStableFunc(due, func(a, b dsl.Due) int { return cmp.Compare(a.Attempt, b.Attempt) })
					for _, one := range due {
						if one.Cause != dsl.Create {
							j.Add("for " + string(one.Cause))
						}
					}
					return due[:1]
				}
				foo.OnReconcile("a", j.Note("a", scene.Fails(dsl.Temporary(scene.ErrAgain, 0)), scene.Fails(dsl.Temporary(scene.ErrAgain, 0)), nil))
				foo.OnReconcile("b", j.Note("b", scene.Fails(dsl.Temporary(scene.ErrAgain, 0)), nil))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("a create", "b create", "a create 2", "b create 2", "a create 3")
			},
		},
		"one that chooses nothing, or panics, has the first one run": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				asked := 0
				foo.Lifecycle = func(due []dsl.Due) []dsl.Due {
					if asked++; asked%2 == 0 {
						panic("no")
					}
					return nil
				}
				threeHandlers(foo, j, dsl.Reconcile)
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("a create", "b create", "c create")
			},
		},
	})
}

// TestALifecycleCanBeGivenInYAML holds that a configuration says it.
func TestALifecycleCanBeGivenInYAML(t *testing.T) {
	handlers := `handlers: [{id: a, set: {status: {a: 1}}}, {id: b, set: {status: {b: 1}}}]}`
	for lifecycle, writes := range map[string][]string{
		"": {scene.StatusWrite}, "lifecycle: all, ": {scene.StatusWrite}, "lifecycle: oneByOne, ": {scene.StatusWrite, scene.StatusWrite},
	} {
		scene.PlayYAML(t, `{resource: foos.v1.example.com, `+lifecycle+handlers, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(writes...)
		})
	}
}

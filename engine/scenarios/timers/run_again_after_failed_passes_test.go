// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHandlerRunsAgainInTimeThoughPassesFail holds that a handler runs again at the time that it asked for, whatever
// becomes of the requests of the reconcile in which it asked, and of those at that time.
func TestAHandlerRunsAgainInTimeThoughPassesFail(t *testing.T) {
	internal := apierrors.NewInternalError(scene.ErrAgain)
	polls := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Hour, nil), runsAgain(time.Hour, nil), scene.Succeeds))
	}
	// beside has another handler whose change the server does not take at first.
	beside := func(foo *dsl.Resource, j *kit.Journal) {
		polls(foo, j)
		foo.OnReconcile("status", scene.ReportsSize)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the change of another handler is not taken": {Operator: beside, Play: func(s *scene.Stage) {
			s.Launch()
			s.FailNext("patch", scene.Foos+"/status", internal)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			s.Called("polls create")
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"the change of a handler before it is not taken at the time": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			n := int64(0)
			foo.OnReconcile("counts", func(_ context.Context, r *dsl.Request) error {
				n++
				r.Patch.SetStatus("count", n)
				r.RunAgain(time.Hour)
				return nil
			})
			polls(foo, j)
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("patch", scene.Foos+"/status", internal)
			s.Advance(time.Hour + time.Minute)
			s.Called("polls again")
			s.WantField("status.count", int64(3)) // the second one was not taken
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"what it has handled is not stored at first": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("polls", j.Note("polls", runsAgain(time.Hour, nil), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.FailNext("patch", scene.Foos, internal)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			s.Called("polls create")
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"what it has handled is stored, and the answer is lost": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("polls", j.Note("polls", runsAgain(time.Hour, nil), scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.LoseNext("patch", scene.Foos)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			s.Called("polls create")
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"its change is stored with what it has handled, and the answer is lost": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("polls", j.Note("polls", func(c context.Context, r *dsl.Request) error {
				r.RunAgain(time.Hour)
				return scene.ReportsSize(c, r)
			}, scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.LoseNext("patch", scene.Foos)
			s.Create(scene.Web)
			s.Advance(time.Minute)
			s.Called("polls create")
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"the finalizer cannot be set at the time": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Hour, nil), scene.Succeeds), dsl.Field("spec.size"))
			foo.OnDelete("left", scene.Succeeds, dsl.Label("tier", "gold"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(59 * time.Minute)
			end := s.FailWhile("patch", scene.Foos, internal)
			s.LabelTier("gold")
			s.Advance(2 * time.Minute)
			end()
			s.Advance(10 * time.Minute)
			s.Called("polls again")
		}},
		"the finalizer cannot be set at the time, and another one has asked for the same": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			for _, id := range []string{"first", "second"} {
				foo.OnReconcile(id, j.Note(id, runsAgain(time.Hour, nil), scene.Succeeds), dsl.Field("spec.size"))
			}
			foo.OnDelete("left", scene.Succeeds, dsl.Label("tier", "gold"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(59 * time.Minute)
			end := s.FailWhile("patch", scene.Foos, internal)
			s.LabelTier("gold")
			s.Advance(2 * time.Minute)
			end()
			s.Advance(10 * time.Minute)
			s.Called("first again", "second again")
		}},
		"its own write is not shown at the time": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", func(c context.Context, r *dsl.Request) error {
				r.RunAgain(time.Second)
				return scene.ReportsSize(c, r)
			}, scene.Succeeds))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.HoldWatches(scene.Foos)
			s.Settle()
			s.Advance(10 * time.Second)
			s.ReleaseWatches(scene.Foos)
			s.Advance(time.Minute)
			s.Called("polls create", "polls again")
		}},
		"its filter fails at the time": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			asked := time.Now()
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Hour, nil), scene.Succeeds), dsl.When(func(*dsl.Subject) (bool, error) {
				if since := time.Since(asked); since > 30*time.Minute && since < 90*time.Minute {
					return false, scene.ErrAgain
				}
				return true, nil
			}))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(80 * time.Minute)
			s.Called()
			s.Advance(20 * time.Minute)
			s.Called("polls again")
		}},
		"one that comes before it fails at the time": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("first", j.Note("first", runsAgain(time.Hour, nil), scene.Fails(dsl.Temporary(scene.ErrAgain, time.Minute)), scene.Succeeds))
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Hour, nil), scene.Succeeds), dsl.After("first"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Hour)
			s.Called("first again")
			s.Advance(2 * time.Minute)
			s.Called("first again 2", "polls again")
		}},
		"a person has set what its run at the time sets": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("polls", j.Note("polls", runsAgain(time.Hour, nil), func(_ context.Context, r *dsl.Request) error {
				scene.DefaultColor(r)
				return nil
			}), dsl.Field("spec.size"))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.WebWithoutColor)
			s.Settle()
			s.Forget()
			s.HoldWatches(scene.Foos)
			s.Set("green", "spec", "color")
			s.Advance(time.Hour)
			s.ReleaseWatches(scene.Foos)
			s.Advance(time.Minute)
			s.Called("polls again", "polls again")
			s.WantField("spec.color", "green")
		}},
	})
}

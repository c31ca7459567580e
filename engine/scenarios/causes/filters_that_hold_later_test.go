// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAChangeIsKeptForAHandlerUntilItsFilterHolds is law 1 for what comes up while a handler does not see the object: it is
// not forgotten because others have handled it.
func TestAChangeIsKeptForAHandlerUntilItsFilterHolds(t *testing.T) {
	gold := dsl.Label("tier", "gold")
	size := dsl.Field("spec.size")
	// filtered declares edge-triggered handlers that see the object where it is gold, beside others that
	// see it always.
	filtered := func(see dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made"), see, size)
			foo.OnUpdate("sized", j.Note("sized"), see, size)
			foo.OnCreate("other", j.Note("other"), size)
			foo.OnUpdate("others", j.Note("others"), size)
		}
	}
	tier := func(s *scene.Stage, value string) { s.Set(value, "metadata", "labels", "tier") }
	scene.PlayAll(t, map[string]scene.Scenario{
		"a create that comes later comes": {Operator: filtered(gold), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("other create")
			s.Advance(time.Hour)
			tier(s, "gold")
			s.Called("made create")
			tier(s, "iron")
			tier(s, "gold")
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"a create that comes after a restart comes": {Operator: filtered(gold), Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Restart()
			s.Called()
			tier(s, "gold")
			s.Called("made create")
		}},
		"a create that comes after a change comes": {Operator: filtered(gold), Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("others update")
			tier(s, "gold")
			s.Settle()
			if n := len(s.Of("made", "web")); n != 1 {
				s.T.Errorf("%d calls of the create handler", n)
			}
		}},
		"an update that was made while it did not see the object comes when it does": {Operator: filtered(gold), Play: func(s *scene.Stage) {
			s.Begin()
			tier(s, "gold")
			s.Called("made create")
			tier(s, "iron")
			s.Resize(2)
			s.Called("others update")
			tier(s, "gold")
			s.Called("sized update")
			s.Process.Restart()
			s.Called()
		}},
		"the same after a restart": {Operator: filtered(gold), Play: func(s *scene.Stage) {
			s.Begin()
			tier(s, "gold")
			s.Settle()
			tier(s, "iron")
			s.Resize(2)
			s.Forget()
			s.Process.Restart()
			s.Called()
			tier(s, "gold")
			s.Called("sized update")
		}},
		"an update that was taken back meanwhile is none": {Operator: filtered(gold), Play: func(s *scene.Stage) {
			s.Begin()
			tier(s, "gold")
			s.Called("made create")
			tier(s, "iron")
			s.Resize(2)
			s.Called("others update")
			s.Resize(1)
			s.Called("others update")
			tier(s, "gold")
			s.Called()
		}},
	})
	asked := func(happens func(s *scene.Stage), want ...string) func(t *testing.T) {
		return func(t *testing.T) {
			var blind atomic.Bool
			see := dsl.When(func(*dsl.Subject) (bool, error) {
				if blind.Load() {
					return false, scene.ErrAgain
				}
				return true, nil
			})
			scene.Play(t, scene.Scenario{Operator: filtered(see), Play: func(s *scene.Stage) {
				s.Launch()
				blind.Store(happens == nil)
				s.Create(scene.Web)
				s.Forget()
				blind.Store(true)
				if happens != nil {
					happens(s)
				}
				s.Forget()
				blind.Store(false)
				s.Set("x", "metadata", "labels", "any")
				s.Called(want...)
			}})
		}
	}
	t.Run("a create whose filter could not be evaluated comes when it can", asked(nil, "made create"))
	t.Run("an update whose filter could not be evaluated comes when it can", asked(func(s *scene.Stage) { s.Resize(2) }, "sized update"))
}

// TestAnObjectThatIsFoundAgainIsNotNew holds that handlers that store nothing run for create once, and for resume in a later
// process. That is so, too, where the handlers beside them do not see the object, and it has no progress.
func TestAnObjectThatIsFoundAgainIsNotNew(t *testing.T) {
	beside := func(unseen func(foo *dsl.Resource, j *kit.Journal)) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			unseen(foo, j)
			foo.OnReconcile("sync", j.Note("sync"))
			foo.OnResume("back", j.Note("back"))
		}
	}
	edge := func(causes []dsl.Cause, filter dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return beside(func(foo *dsl.Resource, j *kit.Journal) { foo.On(causes, "edge", j.Note("edge"), filter) })
	}
	again := func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Called("sync create")
		for range 2 {
			s.Forget()
			s.Process.Restart()
			s.Called("sync resume", "back resume")
			s.Wrote()
		}
	}
	never := func(*dsl.Subject) (bool, error) { return false, nil }
	gold := dsl.Label("tier", "gold")
	create, update := []dsl.Cause{dsl.Create}, []dsl.Cause{dsl.Update}
	all := map[string]scene.Scenario{
		"one of creations, by a label":        {Operator: edge(create, gold), Play: again},
		"one of creations, by a condition":    {Operator: edge(create, dsl.When(never)), Play: again},
		"one of creations that cannot answer": {Operator: edge(create, dsl.When(func(*dsl.Subject) (bool, error) { return false, scene.ErrAgain })), Play: again},
		"one of changes":                      {Operator: edge(update, gold), Play: again},
		"one of both":                         {Operator: edge(scene.CreateAndUpdate(), gold), Play: again},
		"the other one creates the object when it sees it": {Operator: edge(create, gold), Play: func(s *scene.Stage) {
			again(s)
			s.LabelTier("gold")
			s.Called("edge create", "sync update")
			s.Process.Restart()
			s.Called("sync resume", "back resume")
		}},
		"an object that came while no process ran is new where one sees it that would have kept that": {Operator: edge(create, gold), Play: func(s *scene.Stage) {
			s.Launch()
			s.Process.Kill()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`)
			s.Process.Restart()
			s.Called("edge create", "sync create")
		}},
		"one whose filter holds for what an earlier handler makes creates the object in the same pass": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.OnCreate("edge", j.Note("edge"), dsl.When(func(r *dsl.Subject) (bool, error) {
				found, err := r.Children.Get(scene.Deployments, "web")
				return found != nil, err
			}))
			foo.OnReconcile("sync", j.Note("sync"))
		}, Play: func(s *scene.Stage) {
			s.Create(scene.Web)
			s.Launch()
			s.Called("edge create", "sync resume")
		}},
	}
	scene.PlayAll(t, all)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestFiltersThatDoNotHoldYet is law 1 for what comes up while a handler does not see the object: it is
// not forgotten because others have handled it.
func TestFiltersThatDoNotHoldYet(t *testing.T) {
	gold := dsl.Label("tier", "gold")
	size := dsl.Field("spec.size")
	// filtered declares edge-triggered handlers that see the object where it is gold, beside others that
	// see it always.
	filtered := func(see dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("made", j.Note("made"), see, size)
			foo.OnUpdate("sized", j.Note("sized"), see, size)
			foo.OnCreate("other", j.Note("other"), size)
			foo.OnUpdate("others", j.Note("others"), size)
		}
	}
	tier := func(s *stage, value string) { s.set(value, "metadata", "labels", "tier") }
	scenarios(t, map[string]scenario{
		"a create that comes later comes": {filtered(gold), func(s *stage) {
			s.Launch()
			s.Create(web)
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
		"a create that comes after a restart comes": {filtered(gold), func(s *stage) {
			s.begin()
			s.Process.Restart()
			s.Called()
			tier(s, "gold")
			s.Called("made create")
		}},
		"a create that comes after a change comes": {filtered(gold), func(s *stage) {
			s.begin()
			s.size(2)
			s.Called("others update")
			tier(s, "gold")
			s.Settle()
			if n := len(s.Of("made", "web")); n != 1 {
				s.t.Errorf("%d calls of the create handler", n)
			}
		}},
		"an update that was made while it did not see the object comes when it does": {filtered(gold), func(s *stage) {
			s.begin()
			tier(s, "gold")
			s.Called("made create")
			tier(s, "iron")
			s.size(2)
			s.Called("others update")
			tier(s, "gold")
			s.Called("sized update")
			s.Process.Restart()
			s.Called()
		}},
		"the same after a restart": {filtered(gold), func(s *stage) {
			s.begin()
			tier(s, "gold")
			s.Settle()
			tier(s, "iron")
			s.size(2)
			s.Forget()
			s.Process.Restart()
			s.Called()
			tier(s, "gold")
			s.Called("sized update")
		}},
		"an update that was taken back meanwhile is none": {filtered(gold), func(s *stage) {
			s.begin()
			tier(s, "gold")
			s.Called("made create")
			tier(s, "iron")
			s.size(2)
			s.Called("others update")
			s.size(1)
			s.Called("others update")
			tier(s, "gold")
			s.Called()
		}},
	})
	asked := func(happens func(s *stage), want ...string) func(t *testing.T) {
		return func(t *testing.T) {
			var blind atomic.Bool
			see := dsl.When(func(*dsl.Subject) (bool, error) {
				if blind.Load() {
					return false, errAgain
				}
				return true, nil
			})
			perform(t, scenario{filtered(see), func(s *stage) {
				s.Launch()
				blind.Store(happens == nil)
				s.Create(web)
				s.Forget()
				blind.Store(true)
				if happens != nil {
					happens(s)
				}
				s.Forget()
				blind.Store(false)
				s.set("x", "metadata", "labels", "any")
				s.Called(want...)
			}})
		}
	}
	t.Run("a create of which the filter could not be asked comes when it can", asked(nil, "made create"))
	t.Run("an update of which the filter could not be asked comes when it can", asked(func(s *stage) { s.size(2) }, "sized update"))
}

// TestAnObjectThatIsFoundAgainIsNotNew holds that handlers that store nothing run for create once, and for resume in a later
// process. That is so, too, where the handlers beside them do not see the object, and it has no book.
func TestAnObjectThatIsFoundAgainIsNotNew(t *testing.T) {
	beside := func(unseen func(foo *dsl.Resource, j *journal)) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			unseen(foo, j)
			foo.OnReconcile("sync", j.Note("sync"))
			foo.OnResume("back", j.Note("back"))
		}
	}
	edge := func(causes []dsl.Cause, filter dsl.Option) func(foo *dsl.Resource, j *journal) {
		return beside(func(foo *dsl.Resource, j *journal) { foo.On(causes, "edge", j.Note("edge"), filter) })
	}
	again := func(s *stage) {
		s.Launch()
		s.Create(web)
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
	all := map[string]scenario{
		"one of creations, by a label":        {edge(create, gold), again},
		"one of creations, by a condition":    {edge(create, dsl.When(never)), again},
		"one of creations that cannot answer": {edge(create, dsl.When(func(*dsl.Subject) (bool, error) { return false, errAgain })), again},
		"one of changes":                      {edge(update, gold), again},
		"one of both":                         {edge(both(), gold), again},
		"the other one creates the object when it sees it": {edge(create, gold), func(s *stage) {
			again(s)
			s.label("gold")
			s.Called("edge create", "sync update")
			s.Process.Restart()
			s.Called("sync resume", "back resume")
		}},
		"an object that came while no process ran is new where one sees it that would have kept that": {edge(create, gold), func(s *stage) {
			s.Launch()
			s.Process.Kill()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1}}`)
			s.Process.Restart()
			s.Called("edge create", "sync create")
		}},
		"one whose filter holds for what an earlier handler makes creates the object in the same pass": {func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", keepsChild)
			foo.OnCreate("edge", j.Note("edge"), dsl.When(func(r *dsl.Subject) (bool, error) {
				found, err := r.Children.Get(deployments, "web")
				return found != nil, err
			}))
			foo.OnReconcile("sync", j.Note("sync"))
		}, func(s *stage) {
			s.Create(web)
			s.Launch()
			s.Called("edge create", "sync resume")
		}},
	}
	scenarios(t, all)
}

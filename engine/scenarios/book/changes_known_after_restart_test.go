// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAChangeBesideACreationThatWaitsIsKnown holds that a process finds where an update handler began, although the creation of
// the object has done nothing but wait so far.
func TestAChangeBesideACreationThatWaitsIsKnown(t *testing.T) {
	for _, most := range []time.Duration{time.Second, time.Hour} {
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("make", j.Note("make", scene.Fails(dsl.Waiting("rain", most))))
			foo.OnUpdate("follow", j.Note("follow"))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(20 * time.Second)
			s.Process.Kill()
			s.Take()
			s.Resize(2)
			s.Process.Restart()
			s.CalledInAnyOrder("make create", "follow update")
		}})
	}
}

// TestAChangeAfterAnUpdateIsKnown holds that a process finds the progress of an object for which an update handler has run,
// also where a create handler was about to be tried again when the last one ended: otherwise the object would be new to
// it, and a change that no process saw no change.
func TestAChangeAfterAnUpdateIsKnown(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnUpdate("follow", j.Note("follow"))
		foo.OnCreate("make", j.Note("make", scene.RetriesAfter(5*time.Second), scene.RetriesAfter(5*time.Second), scene.RetriesAfter(5*time.Second)))
	}, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Called("make create")
		s.Resize(7)
		s.CalledInAnyOrder("follow update", "make create")
		s.Process.Kill()
		s.Resize(8)
		s.Process.Restart()
		s.Settle()
		if !slices.Contains(s.Take(), "follow update") {
			s.T.Error("the change while no process ran is lost")
		}
	}})
}

// TestANewHandlerOfAnotherVersionRemembersWhereItBegan is law 2 for a handler that is new in a version of the operator: it
// begins with the object as it is then, and a later process finds where that was, at the cost of one write for each object.
func TestANewHandlerOfAnotherVersionRemembersWhereItBegan(t *testing.T) {
	first := func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("make", j.Note("make")) }
	with := func(then func(foo *dsl.Resource, j *kit.Journal)) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			first(foo, j)
			then(foo, j)
		}
	}
	follow := with(func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("follow", j.Note("follow")) })
	golden := with(func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnUpdate("follow", j.Note("follow"), dsl.Field("spec.size"), dsl.Label("tier", "gold"))
	})
	restarted := func(s *scene.Stage, away func()) {
		s.Take()
		s.Process.Kill()
		away()
		s.Process.Restart()
		s.Settle()
	}
	two := func(s *scene.Stage) func() { return func() { s.Resize(2) } }
	scene.PlayAll(t, map[string]scene.Scenario{
		"a change while no process ran reaches it": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(follow, nil)
			s.Called()
			s.Wrote("patch foos default/web")
			restarted(s, two(s))
			s.Called("follow update")
		}},
		"so it does where the process ended before the first write was answered": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.LoseNext("patch", scene.Foos)
			s.Upgrade(follow, nil)
			restarted(s, two(s))
			s.Called("follow update")
		}},
		"and where the first write failed": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.FailNext("patch", scene.Foos, scene.ErrAgain)
			s.Upgrade(follow, nil)
			s.Advance(time.Minute)
			restarted(s, two(s))
			s.Called("follow update")
		}},
		"a restart with nothing new writes nothing": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(follow, nil)
			s.Advance(time.Hour)
			for range 3 {
				s.Forget()
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			}
		}},
		"one whose filter holds later begins then, and remembers that": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(golden, nil)
			s.Wrote()
			s.LabelTier("gold")
			s.Called()
			s.Wrote("patch foos default/web")
			restarted(s, two(s))
			s.Called("follow update")
		}},
		"one whose filter fails begins where it was first seen, and remembers that": {Operator: first, Play: func(s *scene.Stage) {
			var fails atomic.Bool
			fails.Store(true)
			s.Begin()
			s.Upgrade(with(func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("follow", scene.NotesOld(j), dsl.Field("spec.size"), dsl.When(func(*dsl.Subject) (bool, error) {
					if fails.Load() {
						return false, scene.ErrAgain
					}
					return true, nil
				}))
			}), nil)
			s.Advance(time.Minute)
			s.Wrote("patch foos default/web")
			restarted(s, two(s))
			s.Advance(time.Minute)
			s.Called()
			fails.Store(false)
			s.Advance(time.Hour)
			s.Called("update map[spec:map[size:1]] [change spec.size 1 2]")
		}},
		"a filter that fails is asked again until it answers": {Operator: first, Play: func(s *scene.Stage) {
			var asked atomic.Int64
			s.Begin()
			s.Upgrade(with(func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("follow", j.Note("follow"), dsl.When(func(*dsl.Subject) (bool, error) {
					if asked.Add(1) < 4 {
						return false, scene.ErrAgain
					}
					return true, nil
				}))
			}), nil)
			s.Advance(time.Hour)
			s.Called()
			s.Wrote("patch foos default/web")
			if n := asked.Load(); n != 4 {
				s.T.Errorf("it was asked %d times", n)
			}
		}},
		"a handler of create alone has nothing to remember": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			another := with(func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("too", j.Note("too")) })
			s.Upgrade(another, nil)
			s.Advance(time.Hour)
			s.Wrote()
			restarted(s, two(s))
			s.Called()
			s.Wrote()
		}},
		"it gets the old state": {Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(with(func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("follow", scene.NotesOld(j), dsl.Field("spec.size"))
			}), nil)
			restarted(s, two(s))
			s.Called("update map[spec:map[size:1]] [change spec.size 1 2]")
		}},
	})
}

// TestACrashOfAnotherVersionForgetsNoChange is law 2 at each write of the first process of a version that has new handlers.
func TestACrashOfAnotherVersionForgetsNoChange(t *testing.T) {
	first := func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("make", j.Note("make")) }
	next := func(foo *dsl.Resource, j *kit.Journal) {
		first(foo, j)
		foo.OnUpdate("follow", j.Note("follow"), dsl.Field("spec.size"))
		foo.OnUpdate("flaky", j.Note("flaky", scene.RetriesAfter(scene.Late), scene.Succeeds))
		foo.OnReconcile("report", j.Note("report", scene.Reports))
	}
	for after := 1; after <= 4; after++ {
		scene.Play(t, scene.Scenario{Operator: first, Play: func(s *scene.Stage) {
			s.Begin()
			s.Upgrade(next, nil)
			s.Take()
			s.Process.CrashAfter(after)
			s.Set("blue", "spec", "color")
			s.Advance(2 * scene.Late)
			s.Process.Kill()
			s.Resize(2)
			s.Process.Restart()
			s.Advance(time.Hour)
			if got := handlersIn(s.Take()); !slices.Contains(got, "follow update") || !slices.Contains(got, "flaky update") {
				s.T.Errorf("after a crash at write %d these have heard of what changed: %v", after, got)
			}
		}})
	}
}

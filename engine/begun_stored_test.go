// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAChangeBesideACreationThatWaitsIsKnown holds that a process finds where an update handler began, although the creation of
// the object has done nothing but wait so far.
func TestAChangeBesideACreationThatWaitsIsKnown(t *testing.T) {
	for _, most := range []time.Duration{time.Second, time.Hour} {
		perform(t, scenario{func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("make", j.Note("make", fails(dsl.Waiting("rain", most))))
			foo.OnUpdate("follow", j.Note("follow"))
		}, func(s *stage) {
			s.begin()
			s.Advance(20 * time.Second)
			s.Process.Kill()
			s.Take()
			s.size(2)
			s.Process.Restart()
			s.CalledInAnyOrder("make create", "follow update")
		}})
	}
}

// TestAChangeAfterAnUpdateIsKnown holds that a process finds the book of an object for which an update handler has run,
// also where a create handler was about to be tried again when the last one ended: otherwise the object would be new to
// it, and a change that nobody saw no change.
func TestAChangeAfterAnUpdateIsKnown(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, j *journal) {
		foo.OnUpdate("follow", j.Note("follow"))
		foo.OnCreate("make", j.Note("make", temporary(5*time.Second), temporary(5*time.Second), temporary(5*time.Second)))
	}, func(s *stage) {
		s.Launch()
		s.Create(web)
		s.Called("make create")
		s.size(7)
		s.CalledInAnyOrder("follow update", "make create")
		s.Process.Kill()
		s.size(8)
		s.Process.Restart()
		s.Settle()
		if !slices.Contains(s.Take(), "follow update") {
			s.t.Error("the change while no process ran is lost")
		}
	}})
}

// TestANewHandlerOfAnotherVersionRemembersWhereItBegan is law 2 for a handler that is new in a version of the operator: it
// begins with the object as it is then, and a later process finds where that was, at the cost of one write for each object.
func TestANewHandlerOfAnotherVersionRemembersWhereItBegan(t *testing.T) {
	first := func(foo *dsl.Resource, j *journal) { foo.OnCreate("make", j.Note("make")) }
	with := func(then func(foo *dsl.Resource, j *journal)) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			first(foo, j)
			then(foo, j)
		}
	}
	follow := with(func(foo *dsl.Resource, j *journal) { foo.OnUpdate("follow", j.Note("follow")) })
	golden := with(func(foo *dsl.Resource, j *journal) {
		foo.OnUpdate("follow", j.Note("follow"), dsl.Field("spec.size"), dsl.Label("tier", "gold"))
	})
	restarted := func(s *stage, away func()) {
		s.Take()
		s.Process.Kill()
		away()
		s.Process.Restart()
		s.Settle()
	}
	two := func(s *stage) func() { return func() { s.size(2) } }
	scenarios(t, map[string]scenario{
		"a change while no process ran reaches it": {first, func(s *stage) {
			s.begin()
			s.upgrade(follow, nil)
			s.Called()
			s.Wrote("patch foos default/web")
			restarted(s, two(s))
			s.Called("follow update")
		}},
		"so it does where the process ended before the first write was answered": {first, func(s *stage) {
			s.begin()
			s.LoseNext("patch", foos)
			s.upgrade(follow, nil)
			restarted(s, two(s))
			s.Called("follow update")
		}},
		"and where the first write failed": {first, func(s *stage) {
			s.begin()
			s.FailNext("patch", foos, errAgain)
			s.upgrade(follow, nil)
			s.Advance(time.Minute)
			restarted(s, two(s))
			s.Called("follow update")
		}},
		"a restart with nothing new writes nothing": {first, func(s *stage) {
			s.begin()
			s.upgrade(follow, nil)
			s.Advance(time.Hour)
			for range 3 {
				s.Forget()
				s.Process.Restart()
				s.Advance(time.Hour)
				s.Called()
				s.Wrote()
			}
		}},
		"one whose filter holds later begins then, and remembers that": {first, func(s *stage) {
			s.begin()
			s.upgrade(golden, nil)
			s.Wrote()
			s.label("gold")
			s.Called()
			s.Wrote("patch foos default/web")
			restarted(s, two(s))
			s.Called("follow update")
		}},
		"one whose filter fails begins where it was first seen, and remembers that": {first, func(s *stage) {
			var fails atomic.Bool
			fails.Store(true)
			s.begin()
			s.upgrade(with(func(foo *dsl.Resource, j *journal) {
				foo.OnUpdate("follow", olds(j), dsl.Field("spec.size"), dsl.When(func(*dsl.Subject) (bool, error) {
					if fails.Load() {
						return false, errAgain
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
		"a filter that fails is asked again until it answers": {first, func(s *stage) {
			var asked atomic.Int64
			s.begin()
			s.upgrade(with(func(foo *dsl.Resource, j *journal) {
				foo.OnUpdate("follow", j.Note("follow"), dsl.When(func(*dsl.Subject) (bool, error) {
					if asked.Add(1) < 4 {
						return false, errAgain
					}
					return true, nil
				}))
			}), nil)
			s.Advance(time.Hour)
			s.Called()
			s.Wrote("patch foos default/web")
			if n := asked.Load(); n != 4 {
				s.t.Errorf("it was asked %d times", n)
			}
		}},
		"a handler of create alone has nothing to remember": {first, func(s *stage) {
			s.begin()
			another := with(func(foo *dsl.Resource, j *journal) { foo.OnCreate("too", j.Note("too")) })
			s.upgrade(another, nil)
			s.Advance(time.Hour)
			s.Wrote()
			restarted(s, two(s))
			s.Called()
			s.Wrote()
		}},
		"it is told what was": {first, func(s *stage) {
			s.begin()
			s.upgrade(with(func(foo *dsl.Resource, j *journal) { foo.OnUpdate("follow", olds(j), dsl.Field("spec.size")) }), nil)
			restarted(s, two(s))
			s.Called("update map[spec:map[size:1]] [change spec.size 1 2]")
		}},
	})
}

// TestACrashOfAnotherVersionForgetsNoChange is law 2 at each write of the first process of a version that has new handlers.
func TestACrashOfAnotherVersionForgetsNoChange(t *testing.T) {
	first := func(foo *dsl.Resource, j *journal) { foo.OnCreate("make", j.Note("make")) }
	next := func(foo *dsl.Resource, j *journal) {
		first(foo, j)
		foo.OnUpdate("follow", j.Note("follow"), dsl.Field("spec.size"))
		foo.OnUpdate("flaky", j.Note("flaky", temporary(late), succeeds))
		foo.OnReconcile("report", j.Note("report", reports))
	}
	for after := 1; after <= 4; after++ {
		perform(t, scenario{first, func(s *stage) {
			s.begin()
			s.upgrade(next, nil)
			s.Take()
			s.Process.CrashAfter(after)
			s.set("blue", "spec", "color")
			s.Advance(2 * late)
			s.Process.Kill()
			s.size(2)
			s.Process.Restart()
			s.Advance(time.Hour)
			if got := handlersIn(s.Take()); !slices.Contains(got, "follow update") || !slices.Contains(got, "flaky update") {
				s.t.Errorf("after a crash at write %d these have heard of what changed: %v", after, got)
			}
		}})
	}
}

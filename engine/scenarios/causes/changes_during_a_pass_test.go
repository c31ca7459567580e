// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package causes_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// threeViews declares a handler for the size, one for all, and one for the color. The second one does what it is given.
func threeViews(second ...dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.On(scene.CreateAndUpdate(), "size", j.Note("size"), dsl.Field("spec.size"))
		foo.On(scene.CreateAndUpdate(), "any", j.Note("any", second...))
		foo.On(scene.CreateAndUpdate(), "color", j.Note("color"), dsl.Field("spec.color"))
	}
}

// TestNoChangeWhileHandlersRunIsLost is law 1: nothing is lost.
func TestNoChangeWhileHandlersRunIsLost(t *testing.T) {
	var s *scene.Stage
	meddle := func(n int64) dsl.Func {
		return func(context.Context, *dsl.Request) error {
			s.Resize(n)
			return nil
		}
	}
	tests := map[string]scene.Scenario{
		"a change while the second of three runs re-runs those that look at it, also the first": {
			Operator: threeViews(meddle(2), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("size create", "any create", "color create", "size update", "any update")
			},
		},
		"a change while the first cycle still retries re-runs what succeeded, and cuts the wait short": {
			Operator: threeViews(scene.RetriesAfter(scene.Late), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("size create", "any create", "color create")
				s.Resize(2)
				s.Called("size update", "any create")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"the same with a retry that is kept in memory": {
			Operator: threeViews(scene.RetriesAfter(scene.Soon), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("size create", "any create", "color create")
				s.Set("blue", "spec", "color")
				s.Called("any create", "color update")
			},
		},
		"a change that is taken back while a handler runs that wants to change the object is seen as two": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "any", j.Note("any", scene.Succeeds, func(ctx context.Context, r *dsl.Request) error {
					s.Resize(1)
					return scene.Reports(ctx, r)
				}, scene.Reports))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("any update", "any update")
				s.WantField("status.size", int64(1))
			},
		},
		"a change while a handler runs that wants what is there already is seen": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "any", j.Note("any", scene.Succeeds, func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.color", "red")
					s.Resize(3)
					return nil
				}, scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("any update", "any update")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"changes while a handler runs that wants nothing are seen, each of them": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "any", j.Note("any", scene.Succeeds, meddle(3), scene.Succeeds, meddle(5), scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("any update", "any update")
				s.Resize(4) // from the first of them on, the progress is written to the version that was read
				s.Called("any update", "any update")
			},
		},
		"a change that the cache shows late is seen when it does": {
			Operator: threeViews(scene.Succeeds), Play: func(s *scene.Stage) {
				s.Begin()
				s.HoldWatches(scene.Foos)
				s.Resize(2)
				s.Called()
				s.ReleaseWatches(scene.Foos)
				s.Called("size update", "any update")
			},
		},
		"changes while nothing is watched are one change": {
			Operator: threeViews(scene.Succeeds), Play: func(s *scene.Stage) {
				s.Begin()
				s.HoldWatches(scene.Foos)
				s.Resize(2)
				s.Resize(3)
				s.ExpireWatches(scene.Foos)
				s.ReleaseWatches(scene.Foos)
				s.Advance(time.Minute)
				s.Called("size update", "any update")
			},
		},
		"a handler's own change of the spec is no news for it, but for others that look there": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "size", j.Note("size", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.size", 7)
					return nil
				}), dsl.Field("spec.size"))
				foo.On(scene.CreateAndUpdate(), "color", j.Note("color"), dsl.Field("spec.color"))
				foo.On(scene.CreateAndUpdate(), "any", j.Note("any"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("size create", "color create", "any create") // which sees what the first wants
				s.Wrote("patch foos default/web")
				s.Advance(time.Hour)
				s.Called()
				s.Process.Restart()
				s.Called()
				s.Wrote()
			},
		},
		"a change that undoes what a handler has just written is handled": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("keep", j.Note("keep", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.size", 7)
					return nil
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(1)
				s.Settle()
				if n, _ := dsl.MustParsePath("spec.size").In(s.Web().Object); n != int64(7) {
					s.T.Errorf("spec.size is %v", n)
				}
			},
		},
	}
	for name, one := range tests {
		play := one.Play
		one.Play = func(on *scene.Stage) {
			s = on
			play(on)
		}
		t.Run(name, func(t *testing.T) { scene.Play(t, one) })
	}
}

// TestAChangeThatIsTakenBackIsSeenAsTwo is law 1 for a change that is taken back while handlers are not through with it.
func TestAChangeThatIsTakenBackIsSeenAsTwo(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a change that is taken back is seen as two by a handler that was done with the first": {
			Operator: threeViews(scene.Succeeds, scene.RetriesAfter(scene.Late), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "any update")
				s.Resize(1)
				s.Called("size update", "any update") // the second had begun with the change
				s.Advance(time.Hour)
				s.Called()
				s.Set("blue", "spec", "color")
				s.Called("any update", "color update")
			},
		},
		"a change that is taken back across a restart is seen as two as well": {
			Operator: threeViews(scene.Succeeds, scene.RetriesAfter(scene.Late), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "any update")
				scene.Stop(s)
				s.Resize(1)
				s.Process.Restart()
				s.Called("size update", "any update")
			},
		},
		"a change that is taken back is undone though that fails at first": {
			Operator: threeViews(scene.Succeeds, scene.RetriesAfter(scene.Late), scene.RetriesAfter(scene.Late), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "any update")
				s.Resize(1)
				s.Called("size update", "any update")
				s.Process.Restart()
				s.Called()
				s.Advance(scene.Late)
				s.Called("any update 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"the same though it has to wait": {
			Operator: threeViews(scene.Succeeds, scene.RetriesAfter(scene.Late), scene.Fails(dsl.Waiting("the rollout", scene.Late)), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("size update", "any update")
				s.Resize(1)
				s.Called("size update", "any update")
				s.Advance(scene.Late / 2)
				s.Process.Restart()
				s.Called("any update")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"the same of a level-triggered handler that comes after one which fails": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("first", j.Note("first", scene.Succeeds, scene.Succeeds, scene.RetriesAfter(scene.Soon), scene.Succeeds), dsl.Field("spec.size"))
				foo.OnReconcile("second", j.Note("second", scene.Succeeds, scene.RetriesAfter(scene.Late), scene.Succeeds), dsl.Field("spec.size"), dsl.After("first"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("first update", "second update")
				s.Resize(1)
				s.Called("first update")
				s.Advance(scene.Soon)
				s.Called("first update 2", "second update")
			},
		},
	})
}

// TestHandlersRunInTheirOrder holds what handlers of one reconcile may rely on.
func TestHandlersRunInTheirOrder(t *testing.T) {
	chain := func(first ...dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("first", j.Note("first", first...))
			foo.OnCreate("free", j.Note("free"))
			foo.OnCreate("second", j.Note("second"), dsl.After("first"))
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"handlers run in declared order": {Operator: chain(scene.Succeeds), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("first create", "free create", "second create")
		}},
		"one that fails keeps only those from running that come after it": {Operator: chain(scene.RetriesAfter(scene.Late), scene.Succeeds), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("first create", "free create")
			s.Advance(scene.Late)
			s.Called("first create 2", "second create")
		}},
		"one that fails for good keeps those from running that come after it, also after a restart": {Operator: chain(scene.Fails(dsl.Permanent(scene.ErrAgain))), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("first create", "free create")
			s.Advance(time.Hour)
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"one that waits for an earlier one still waits after a restart": {Operator: chain(scene.RetriesAfter(scene.Late), scene.Succeeds), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("first create", "free create")
			s.Process.Restart()
			s.Called()
			s.Advance(scene.Late)
			s.Called("first create 2", "second create")
		}},
	})
}

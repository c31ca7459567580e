// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// both are the causes of a handler that wants to know of every change.
func both() []dsl.Cause { return []dsl.Cause{dsl.Create, dsl.Update} }

// soon and late are failures that are tried again within the time that progress is kept in memory
// for, and beyond it.
const (
	soon = 5 * time.Second
	late = time.Minute
)

// temporary fails, to be tried again after the time given.
func temporary(after time.Duration) dsl.Func { return fails(dsl.Temporary(errAgain, after)) }

// TestChangesInTheMiddleOfACycle is law 1: nothing is lost.
func TestChangesInTheMiddleOfACycle(t *testing.T) {
	var s *stage
	meddle := func(n int64) dsl.Func {
		return func(context.Context, *dsl.Request) error {
			s.size(n)
			return nil
		}
	}
	three := func(second ...dsl.Func) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(both(), "size", j.Note("size"), dsl.Field("spec.size"))
			foo.On(both(), "any", j.Note("any", second...))
			foo.On(both(), "color", j.Note("color"), dsl.Field("spec.color"))
		}
	}
	tests := map[string]scenario{
		"a change while the second of three runs re-runs those that look at it, also the first": {
			three(meddle(2), succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("size create", "any create", "color create", "size update", "any update")
			},
		},
		"a change while the first cycle still retries re-runs what succeeded, and cuts the wait short": {
			three(temporary(late), succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("size create", "any create", "color create")
				s.size(2)
				s.Called("size update", "any create")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"the same with a retry that is kept in memory": {
			three(temporary(soon), succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("size create", "any create", "color create")
				s.set("blue", "spec", "color")
				s.Called("any create", "color update")
			},
		},
		"a change that is taken back is seen as two by a handler that was done with the first": {
			three(succeeds, temporary(late), succeeds), func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "any update")
				s.size(1)
				s.Called("size update", "any update") // the second had begun with the change
				s.Advance(time.Hour)
				s.Called()
				s.set("blue", "spec", "color")
				s.Called("any update", "color update")
			},
		},
		"a change that is taken back across a restart is seen as two as well": {
			three(succeeds, temporary(late), succeeds), func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "any update")
				stop(s)
				s.size(1)
				s.Process.Restart()
				s.Called("size update", "any update")
			},
		},
		"a change that is taken back is undone though that fails at first": {
			three(succeeds, temporary(late), temporary(late), succeeds), func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "any update")
				s.size(1)
				s.Called("size update", "any update")
				s.Process.Restart()
				s.Called()
				s.Advance(late)
				s.Called("any update 2")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"the same though it has to wait": {
			three(succeeds, temporary(late), fails(dsl.Waiting("the rollout", late)), succeeds), func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("size update", "any update")
				s.size(1)
				s.Called("size update", "any update")
				s.Advance(late / 2)
				s.Process.Restart()
				s.Called("any update")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"the same of a level-triggered handler that comes after one which fails": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("first", j.Note("first", succeeds, succeeds, temporary(soon), succeeds), dsl.Field("spec.size"))
				foo.OnReconcile("second", j.Note("second", succeeds, temporary(late), succeeds), dsl.Field("spec.size"), dsl.After("first"))
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("first update", "second update")
				s.size(1)
				s.Called("first update")
				s.Advance(soon)
				s.Called("first update 2", "second update")
			},
		},
		"a change that is taken back while a handler runs that wants to change the object is seen as two": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "any", j.Note("any", succeeds, func(ctx context.Context, r *dsl.Request) error {
					s.size(1)
					return reports(ctx, r)
				}, reports))
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("any update", "any update")
				s.at("status.size", int64(1))
			},
		},
		"a change while a handler runs that wants what is there already is seen": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "any", j.Note("any", succeeds, func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.color", "red")
					s.size(3)
					return nil
				}, succeeds))
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("any update", "any update")
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"changes while a handler runs that wants nothing are seen, each of them": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "any", j.Note("any", succeeds, meddle(3), succeeds, meddle(5), succeeds))
			}, func(s *stage) {
				s.begin()
				s.size(2)
				s.Called("any update", "any update")
				s.size(4) // from the first of them on, the book is written to the version that was read
				s.Called("any update", "any update")
			},
		},
		"a change that the cache shows late is seen when it does": {
			three(succeeds), func(s *stage) {
				s.begin()
				s.HoldWatches(foos)
				s.size(2)
				s.Called()
				s.ReleaseWatches(foos)
				s.Called("size update", "any update")
			},
		},
		"changes while nothing is watched are one change": {
			three(succeeds), func(s *stage) {
				s.begin()
				s.HoldWatches(foos)
				s.size(2)
				s.size(3)
				s.ExpireWatches(foos)
				s.ReleaseWatches(foos)
				s.Advance(time.Minute)
				s.Called("size update", "any update")
			},
		},
		"a handler's own change of the spec is no news for it, but for others that look there": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "size", j.Note("size", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.size", 7)
					return nil
				}), dsl.Field("spec.size"))
				foo.On(both(), "color", j.Note("color"), dsl.Field("spec.color"))
				foo.On(both(), "any", j.Note("any"))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
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
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("keep", j.Note("keep", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.size", 7)
					return nil
				}))
			}, func(s *stage) {
				s.begin()
				s.size(1)
				s.Settle()
				if n, _ := dsl.MustParsePath("spec.size").In(s.web().Object); n != int64(7) {
					s.t.Errorf("spec.size is %v", n)
				}
			},
		},
	}
	for name, one := range tests {
		play := one.play
		one.play = func(on *stage) {
			s = on
			play(on)
		}
		t.Run(name, func(t *testing.T) { perform(t, one) })
	}
}

// TestOrder holds what handlers of one pass may rely on.
func TestOrder(t *testing.T) {
	chain := func(first ...dsl.Func) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("first", j.Note("first", first...))
			foo.OnCreate("free", j.Note("free"))
			foo.OnCreate("second", j.Note("second"), dsl.After("first"))
		}
	}
	scenarios(t, map[string]scenario{
		"handlers run in declared order": {chain(succeeds), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("first create", "free create", "second create")
		}},
		"one that fails keeps only those from running that come after it": {chain(temporary(late), succeeds), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("first create", "free create")
			s.Advance(late)
			s.Called("first create 2", "second create")
		}},
		"one that fails for good keeps those from running that come after it, also after a restart": {chain(fails(dsl.Permanent(errAgain))), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("first create", "free create")
			s.Advance(time.Hour)
			s.Called()
			s.Process.Restart()
			s.Called()
		}},
		"one that waits for an earlier one still waits after a restart": {chain(temporary(late), succeeds), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("first create", "free create")
			s.Process.Restart()
			s.Called()
			s.Advance(late)
			s.Called("first create 2", "second create")
		}},
	})
}

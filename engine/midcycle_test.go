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
			foo.On(both(), "size", j.note("size"), dsl.Field("spec.size"))
			foo.On(both(), "any", j.note("any", second...))
			foo.On(both(), "color", j.note("color"), dsl.Field("spec.color"))
		}
	}
	tests := map[string]scenario{
		"a change while the second of three runs re-runs those that look at it, also the first": {
			three(meddle(2), succeeds), func(s *stage) {
				s.start()
				s.Create(web)
				s.calls("size create", "any create", "color create", "size update", "any update")
			},
		},
		"a change while the first cycle still retries re-runs what succeeded, and cuts the wait short": {
			three(temporary(late), succeeds), func(s *stage) {
				s.start()
				s.Create(web)
				s.calls("size create", "any create", "color create")
				s.size(2)
				s.calls("size create", "any create")
				s.Advance(time.Hour)
				s.calls()
			},
		},
		"the same with a retry that is kept in memory": {
			three(temporary(soon), succeeds), func(s *stage) {
				s.start()
				s.Create(web)
				s.calls("size create", "any create", "color create")
				s.set("blue", "spec", "color")
				s.calls("any create", "color create")
			},
		},
		"a change that is taken back is seen as two by a handler that was done with the first": {
			three(succeeds, temporary(late), succeeds), func(s *stage) {
				s.begin()
				s.size(2)
				s.calls("size update", "any update")
				s.size(1)
				s.calls("size update")
				s.Advance(time.Hour)
				s.calls()
				s.set("blue", "spec", "color")
				s.calls("any update", "color update")
			},
		},
		"a change that is taken back across a restart is seen as two as well": {
			three(succeeds, temporary(late), succeeds), func(s *stage) {
				s.begin()
				s.size(2)
				s.calls("size update", "any update")
				stop(s)
				s.size(1)
				s.p.Restart()
				s.calls("size update")
			},
		},
		"a change that the cache shows late is seen when it does": {
			three(succeeds), func(s *stage) {
				s.begin()
				s.HoldWatches(foos)
				s.size(2)
				s.calls()
				s.ReleaseWatches(foos)
				s.calls("size update", "any update")
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
				s.calls("size update", "any update")
			},
		},
		"a handler's own change of the spec is no news for it, but for others that look there": {
			func(foo *dsl.Resource, j *journal) {
				foo.On(both(), "size", j.note("size", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("spec.size", 7)
					return nil
				}), dsl.Field("spec.size"))
				foo.On(both(), "color", j.note("color"), dsl.Field("spec.color"))
				foo.On(both(), "any", j.note("any"))
			}, func(s *stage) {
				s.start()
				s.Create(web)
				s.calls("size create", "color create", "any create", "any create")
				s.writes("patch foos default/web", "patch foos default/web")
				s.Advance(time.Hour)
				s.calls()
				s.p.Restart()
				s.calls()
				s.writes()
			},
		},
		"a change that undoes what a handler has just written is handled": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("keep", j.note("keep", func(_ context.Context, r *dsl.Request) error {
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
			foo.OnCreate("first", j.note("first", first...))
			foo.OnCreate("free", j.note("free"))
			foo.OnCreate("second", j.note("second"), dsl.After("first"))
		}
	}
	scenarios(t, map[string]scenario{
		"handlers run in declared order": {chain(succeeds), func(s *stage) {
			s.start()
			s.Create(web)
			s.calls("first create", "free create", "second create")
		}},
		"one that fails keeps only those from running that come after it": {chain(temporary(late), succeeds), func(s *stage) {
			s.start()
			s.Create(web)
			s.calls("first create", "free create")
			s.Advance(late)
			s.calls("first create 2", "second create")
		}},
		"one that fails for good fails those that come after it": {chain(fails(dsl.Permanent(errAgain))), func(s *stage) {
			s.start()
			s.Create(web)
			s.calls("first create", "free create")
			s.Advance(time.Hour)
			s.calls()
			s.p.Restart()
			s.calls()
		}},
		"one that waits for an earlier one still waits after a restart": {chain(temporary(late), succeeds), func(s *stage) {
			s.start()
			s.Create(web)
			s.calls("first create", "free create")
			s.p.Restart()
			s.calls()
			s.Advance(late)
			s.calls("first create 2", "second create")
		}},
	})
}

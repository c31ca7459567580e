// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestRetriesThatComeSoonCostNothing is the budget of writes: each retry that comes late costs one, and those that
// come within ten seconds cost none, also beside others.
func TestRetriesThatComeSoonCostNothing(t *testing.T) {
	two := func(causes ...dsl.Cause) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.On(causes, "soon", j.Note("soon", temporary(soon)))
			foo.On(causes, "late", j.Note("late", temporary(10*time.Minute)))
		}
	}
	// most checks how many writes there were, beside one for each call of the handler whose retries are late.
	most := func(s *stage, more int) {
		s.t.Helper()
		writes, early, late := len(s.Writes()), len(s.Of("soon", "web")), len(s.Of("late", "web"))
		if writes > late+more {
			s.t.Errorf("%d writes for %d calls whose retries come late, and %d whose retries come soon", writes, late, early)
		}
		if early < 20 {
			s.t.Errorf("%d calls whose retries come soon", early)
		}
	}
	scenarios(t, map[string]scenario{
		"of a creation, beside late ones": {two(dsl.Create), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Advance(time.Hour)
			most(s, 0)
		}},
		"of a change, beside late ones": {two(dsl.Update), func(s *stage) {
			s.begin()
			s.size(2)
			s.Advance(time.Hour)
			most(s, 0)
		}},
		"of a deletion, beside late ones": {two(dsl.Delete), func(s *stage) {
			s.begin()
			s.remove()
			s.Advance(time.Hour)
			most(s, 0)
		}},
		"of a change, over restarts": {func(foo *dsl.Resource, j *journal) {
			foo.OnUpdate("soon", j.Note("soon", temporary(9*time.Second)))
		}, func(s *stage) {
			s.begin()
			s.size(2)
			for range 5 {
				s.Advance(20 * time.Minute)
				s.Process.Restart()
			}
			most(s, 1)
		}},
		"of a change, with waits in between": {func(foo *dsl.Resource, j *journal) {
			n := 0
			foo.OnUpdate("soon", j.Note("soon", func(context.Context, *dsl.Request) error {
				if n++; n%2 == 0 {
					return dsl.Waiting("rain", 3*time.Second)
				}
				return dsl.Temporary(errAgain, 4*time.Second)
			}))
		}, func(s *stage) {
			s.begin()
			s.size(2)
			s.Advance(time.Hour)
			most(s, 1)
		}},
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestRetriesThatComeSoonCostNoWrite is the budget of writes: each retry that comes late costs one, and those that
// come within ten seconds cost none, also beside others.
func TestRetriesThatComeSoonCostNoWrite(t *testing.T) {
	two := func(causes ...dsl.Cause) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(causes, "soon", j.Note("soon", scene.RetriesAfter(scene.Soon)))
			foo.On(causes, "late", j.Note("late", scene.RetriesAfter(10*time.Minute)))
		}
	}
	// most checks how many writes there were, beside one for each call of the handler whose retries are late.
	most := func(s *scene.Stage, more int) {
		s.T.Helper()
		writes, early, late := len(s.Writes()), len(s.Of("soon", "web")), len(s.Of("late", "web"))
		if writes > late+more {
			s.T.Errorf("%d writes for %d calls whose retries come late, and %d whose retries come soon", writes, late, early)
		}
		if early < 20 {
			s.T.Errorf("%d calls whose retries come soon", early)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"of a creation, beside late ones": {Operator: two(dsl.Create), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Hour)
			most(s, 0)
		}},
		"of a change, beside late ones": {Operator: two(dsl.Update), Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Advance(time.Hour)
			most(s, 0)
		}},
		"of a deletion, beside late ones": {Operator: two(dsl.Delete), Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Advance(time.Hour)
			most(s, 0)
		}},
		"of a change, over restarts": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnUpdate("soon", j.Note("soon", scene.RetriesAfter(9*time.Second)))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			for range 5 {
				s.Advance(20 * time.Minute)
				s.Process.Restart()
			}
			most(s, 1)
		}},
		"of a change, with waits in between": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			n := 0
			foo.OnUpdate("soon", j.Note("soon", func(context.Context, *dsl.Request) error {
				if n++; n%2 == 0 {
					return dsl.Waiting("rain", 3*time.Second)
				}
				return dsl.Temporary(scene.ErrAgain, 4*time.Second)
			}))
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Advance(time.Hour)
			most(s, 1)
		}},
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestStepsGoOnWhereTheyWere holds that a handler of steps goes on where it was, and begins again for something new.
func TestStepsGoOnWhereTheyWere(t *testing.T) {
	steps := func(second ...dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("steps", dsl.Steps(j.Note("one"), j.Note("two", second...), j.Note("three")))
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the next attempt goes on": {
			Operator: steps(scene.RetriesAfter(time.Minute), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("one create", "two create")
				s.Advance(time.Minute)
				s.Called("two create 2", "three create 2")
			},
		},
		"also after a crash, where progress is stored": {
			Operator: steps(scene.RetriesAfter(time.Minute), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("one create", "two create")
				s.Process.Kill()
				s.Process.Restart()
				s.Called()
				s.Advance(time.Minute)
				s.Called("two create 2", "three create 2")
				if text := s.Web().GetAnnotations()[scene.StateAnnotation]; strings.Contains(text, `"step"`) {
					s.T.Errorf("stored is %s", text)
				}
			},
		},
		"after one before it was stored they are repeated": {
			Operator: steps(scene.RetriesAfter(5*time.Second), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("one create", "two create")
				s.Process.Kill()
				s.Process.Restart()
				s.Called("one create", "two create", "three create")
			},
		},
		"a change begins again": {
			Operator: steps(scene.RetriesAfter(time.Minute), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Forget()
				s.Resize(2)
				s.Called("one create", "two create", "three create")
			},
		},
		"one that waits goes on too": {
			Operator: steps(scene.Fails(dsl.Waiting("rain", time.Minute)), scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("one create", "two create", "two create", "three create")
			},
		},
		"of an attempt that overran, the step alone that did is repeated": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("steps", dsl.Steps(j.Note("one"), j.Note("two", scene.TakesTime(time.Minute), scene.Succeeds)), dsl.Timeout(time.Second))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(10 * time.Second)
				s.Called("one create", "two create", "two create 2")
			},
		},
		"and so is the one that panicked": {
			Operator: steps(func(context.Context, *dsl.Request) error { panic("no") }, scene.Succeeds), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(10 * time.Second)
				s.Called("one create", "two create", "two create 2", "three create 2")
			},
		},
	})
}

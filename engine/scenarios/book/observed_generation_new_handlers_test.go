// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestANewHandlerJoinsWithObservedGeneration is law 2 for a handler that is new in a version, where status.observedGeneration
// says what was handled: it is not created, and hears of what changes from then on, also while no process runs.
func TestANewHandlerJoinsWithObservedGeneration(t *testing.T) {
	first := func(foo *dsl.Resource, j *kit.Journal) {
		foo.ObservedGeneration = true
		foo.On(scene.CreateAndUpdate(), "first", j.Note("first", scene.ReportsSize), bySpec()...)
	}
	for name, test := range map[string]struct {
		joins func(foo *dsl.Resource, h dsl.Func)
		want  []string
	}{
		"one of updates of the spec": {
			func(foo *dsl.Resource, h dsl.Func) { foo.OnUpdate("second", h, bySpec()...) },
			[]string{"first update", "second update"},
		},
		"one of creations": {
			func(foo *dsl.Resource, h dsl.Func) { foo.OnCreate("second", h) },
			[]string{"first update"},
		},
	} {
		next := func(foo *dsl.Resource, j *kit.Journal) {
			first(foo, j)
			test.joins(foo, j.Note("second"))
		}
		for how, ends := range map[string]func(s *scene.Stage){
			"at rest":                            func(*scene.Stage) {},
			"after a write whose answer is lost": func(s *scene.Stage) { s.LoseNext("patch", scene.Foos) },
			"after a write that fails":           func(s *scene.Stage) { s.FailNext("patch", scene.Foos, scene.ErrAgain) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				playWithObservedGeneration(t, scene.Scenario{Operator: first, Play: func(s *scene.Stage) {
					s.Begin()
					ends(s)
					s.Upgrade(next, nil)
					s.Advance(time.Minute)
					s.Called()
					s.Process.Kill()
					s.Resize(2)
					s.Process.Restart()
					s.Advance(time.Minute)
					s.Called(test.want...)
					wantAllObserved(s)
				}})
			})
		}
	}
}

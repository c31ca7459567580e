// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestAHandlerJoinsWhereANumberSaysWhatWasHandled is law 2 for a handler that is new in a version, where status.observedGeneration
// says what was handled: it is not created, and hears of what changes from then on, also while no process runs.
func TestAHandlerJoinsWhereANumberSaysWhatWasHandled(t *testing.T) {
	first := func(foo *dsl.Resource, j *journal) {
		foo.ObservedGeneration = true
		foo.On(both(), "first", j.Note("first", sizes), bySpec()...)
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
		next := func(foo *dsl.Resource, j *journal) {
			first(foo, j)
			test.joins(foo, j.Note("second"))
		}
		for how, ends := range map[string]func(s *stage){
			"at rest":                            func(*stage) {},
			"after a write whose answer is lost": func(s *stage) { s.LoseNext("patch", foos) },
			"after a write that fails":           func(s *stage) { s.FailNext("patch", foos, errAgain) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				counted(t, scenario{first, func(s *stage) {
					s.begin()
					ends(s)
					s.upgrade(next, nil)
					s.Advance(time.Minute)
					s.Called()
					s.Process.Kill()
					s.size(2)
					s.Process.Restart()
					s.Advance(time.Minute)
					s.Called(test.want...)
					s.allObserved()
				}})
			})
		}
	}
}

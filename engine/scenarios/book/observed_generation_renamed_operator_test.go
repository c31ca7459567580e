// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestARenamedOperatorKnowsItsObservedGeneration holds that an operator that is renamed, and keeps what was handled
// elsewhere from then on, knows what status.observedGeneration said under its earlier name.
func TestARenamedOperatorKnowsItsObservedGeneration(t *testing.T) {
	holds := func(foo *dsl.Resource, j *kit.Journal) {
		madeAndChanged(foo, j)
		foo.OnDelete("left", j.Note("left"))
	}
	run := func(s *scene.Stage, declare func(foo *dsl.Resource, j *kit.Journal), observes bool, name string, was ...string) {
		if s.Process != nil {
			s.Process.Kill()
		}
		s.Operator = dsl.New(name)
		s.Operator.Was = was
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.ObservedGeneration = observes
			declare(foo, &s.Journal)
		})
		s.Process = s.Start(s.Operator)
		s.Settle()
	}
	for title, declare := range map[string]func(foo *dsl.Resource, j *kit.Journal){
		"objects have nothing but the number": madeAndChanged, "objects have a finalizer, too": holds,
	} {
		for name, play := range map[string]func(s *scene.Stage){
			"it is renamed and switched at once": func(s *scene.Stage) {
				run(s, declare, false, "new", "op")
			},
			"it is renamed and switched later": func(s *scene.Stage) {
				run(s, declare, true, "new", "op")
				s.Called()
				run(s, declare, false, "new", "op")
			},
			"it is renamed and rolled back": func(s *scene.Stage) {
				run(s, declare, true, "new", "op")
				s.Resize(3)
				s.Called("h update")
				run(s, declare, false, "op", "new")
			},
		} {
			t.Run(title+": "+name, func(t *testing.T) {
				playSwitched(t, true, declare, func(s *scene.Stage, _ *dsl.Resource) {
					s.Create(scene.Web)
					run(s, declare, true, "op")
					s.Called("made create", "h create")
					play(s)
					s.Called()
					s.Resize(2)
					s.Called("h update")
				})
			})
		}
	}
}

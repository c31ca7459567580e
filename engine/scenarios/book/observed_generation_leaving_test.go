// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnObjectThatComesBackIsNewDespiteItsObservedGeneration holds that an object that has left the selector is new when it
// comes back, where status.observedGeneration says what was handled, or said so for an earlier version.
func TestAnObjectThatComesBackIsNewDespiteItsObservedGeneration(t *testing.T) {
	selects := func(options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector = "tier=gold"
			madeAndChanged(foo, j)
			foo.OnDelete("left", j.Note("left"), options...)
		}
	}
	leaves := func(s *scene.Stage) {
		s.T.Helper()
		s.Set("lead", "metadata", "labels", "tier")
		s.Called("left delete")
		s.WantFinalizers()
		if n, found, _ := unstructured.NestedInt64(s.Web().Object, "status", "observedGeneration"); found {
			s.T.Errorf("status.observedGeneration is %d still", n)
		}
	}
	returns := func(s *scene.Stage) {
		s.T.Helper()
		s.Set("gold", "metadata", "labels", "tier")
		s.Called("made create", "h create")
	}
	begins := func(s *scene.Stage) {
		s.T.Helper()
		s.Launch()
		s.Create(scene.GoldWeb)
		s.Called("made create", "h create")
		s.Forget()
	}
	tests := map[string]struct {
		options []dsl.Option
		play    func(s *scene.Stage, foo *dsl.Resource)
	}{
		"it comes back to the same process": {nil, func(s *scene.Stage, _ *dsl.Resource) {
			begins(s)
			leaves(s)
			returns(s)
			wantAllObserved(s)
			leaves(s)
			s.Process.Restart()
			returns(s)
			s.Resize(2)
			s.Called("h update")
			wantAllObserved(s)
		}},
		"no handler holds it": {[]dsl.Option{dsl.NoFinalizer()}, func(s *scene.Stage, _ *dsl.Resource) {
			begins(s)
			leaves(s)
			returns(s)
		}},
		"the number is an earlier version's": {nil, func(s *scene.Stage, foo *dsl.Resource) {
			begins(s)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called()
			leaves(s)
			returns(s)
		}},
		"the number is an earlier version's, and no handler holds it": {[]dsl.Option{dsl.NoFinalizer()}, func(s *scene.Stage, foo *dsl.Resource) {
			begins(s)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called()
			leaves(s)
			returns(s)
		}},
		"the number is an earlier version's, and the cache holds the spec alone": {nil, func(s *scene.Stage, foo *dsl.Resource) {
			begins(s)
			foo.ObservedGeneration, foo.Keep = false, []dsl.Path{{"spec"}}
			s.Process.Restart()
			s.Called()
			leaves(s)
			returns(s)
		}},
		"keys alone are held": {nil, func(s *scene.Stage, foo *dsl.Resource) {
			foo.Cache = dsl.CacheLive
			begins(s)
			leaves(s)
			returns(s)
		}},
		"the number is an earlier version's, and the right to take it away is missing": {nil, func(s *scene.Stage, foo *dsl.Resource) {
			begins(s)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called()
			s.Forbid("patch", scene.Foos+"/status")
			s.Set("lead", "metadata", "labels", "tier")
			s.Advance(time.Minute)
			s.WantFinalizers()
		}},
		"keys alone are held, and no handler holds it": {[]dsl.Option{dsl.NoFinalizer()}, func(s *scene.Stage, foo *dsl.Resource) {
			foo.Cache = dsl.CacheLive
			begins(s)
			leaves(s)
			returns(s)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Resize(2)
			s.Called("h update")
			leaves(s)
			returns(s)
		}},
		"a server that takes no status for a while": {nil, func(s *scene.Stage, _ *dsl.Resource) {
			begins(s)
			end := s.FailWhile("patch", scene.Foos+"/status", scene.ErrAgain)
			s.Set("lead", "metadata", "labels", "tier")
			s.Advance(time.Minute)
			end()
			s.Advance(time.Hour)
			s.Take()
			s.WantFinalizers()
			returns(s)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { playSwitched(t, true, selects(test.options...), test.play) })
	}
}

// TestAnObservedGenerationPastTheGenerationDoesNotCount holds that an object is new that was restored with the status of an
// earlier one.
func TestAnObservedGenerationPastTheGenerationDoesNotCount(t *testing.T) {
	playSwitched(t, true, madeAndChanged, func(s *scene.Stage, _ *dsl.Resource) {
		s.Create(scene.Web)
		s.Set(int64(5), "status", "observedGeneration")
		s.Launch()
		s.Called("made create", "h create")
		wantAllObserved(s)
		s.Process.Restart()
		s.Called()
		s.Wrote("patch foos default/web", "patch foos/status default/web", "patch foos default/web")
	})
}

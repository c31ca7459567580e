// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// goldenWeb is web for an operator that selects what is gold.
const goldenWeb = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: web, labels: {tier: gold}}, spec: {size: 1, color: red}}`

// TestWhatComesBackIsNewForObservedGeneration holds that an object that has left the selector is new when it comes back, where
// status.observedGeneration says what was handled, or said so for an earlier version.
func TestWhatComesBackIsNewForObservedGeneration(t *testing.T) {
	selects := func(options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.LabelSelector = "tier=gold"
			madeAndChanged(foo, j)
			foo.OnDelete("left", j.Note("left"), options...)
		}
	}
	leaves := func(s *stage) {
		s.t.Helper()
		s.set("lead", "metadata", "labels", "tier")
		s.Called("left delete")
		s.finalizers()
		if n, found, _ := unstructured.NestedInt64(s.web().Object, "status", "observedGeneration"); found {
			s.t.Errorf("status.observedGeneration is %d still", n)
		}
	}
	returns := func(s *stage) {
		s.t.Helper()
		s.set("gold", "metadata", "labels", "tier")
		s.Called("made create", "h create")
	}
	begins := func(s *stage) {
		s.t.Helper()
		s.Launch()
		s.Create(goldenWeb)
		s.Called("made create", "h create")
		s.Forget()
	}
	tests := map[string]struct {
		options []dsl.Option
		play    func(s *stage, foo *dsl.Resource)
	}{
		"it comes back to the same process": {nil, func(s *stage, _ *dsl.Resource) {
			begins(s)
			leaves(s)
			returns(s)
			s.allObserved()
			leaves(s)
			s.Process.Restart()
			returns(s)
			s.size(2)
			s.Called("h update")
			s.allObserved()
		}},
		"no handler holds it": {[]dsl.Option{dsl.NoFinalizer()}, func(s *stage, _ *dsl.Resource) {
			begins(s)
			leaves(s)
			returns(s)
		}},
		"the number is an earlier version's": {nil, func(s *stage, foo *dsl.Resource) {
			begins(s)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called()
			leaves(s)
			returns(s)
		}},
		"the number is an earlier version's, and no handler holds it": {[]dsl.Option{dsl.NoFinalizer()}, func(s *stage, foo *dsl.Resource) {
			begins(s)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called()
			leaves(s)
			returns(s)
		}},
		"the number is an earlier version's, and the cache holds the spec alone": {nil, func(s *stage, foo *dsl.Resource) {
			begins(s)
			foo.ObservedGeneration, foo.Keep = false, []dsl.Path{{"spec"}}
			s.Process.Restart()
			s.Called()
			leaves(s)
			returns(s)
		}},
		"keys alone are held": {nil, func(s *stage, foo *dsl.Resource) {
			foo.Cache = dsl.CacheLive
			begins(s)
			leaves(s)
			returns(s)
		}},
		"the number is an earlier version's, and the right to take it away is missing": {nil, func(s *stage, foo *dsl.Resource) {
			begins(s)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.Called()
			s.Forbid("patch", foos+"/status")
			s.set("lead", "metadata", "labels", "tier")
			s.Advance(time.Minute)
			s.finalizers()
		}},
		"keys alone are held, and no handler holds it": {[]dsl.Option{dsl.NoFinalizer()}, func(s *stage, foo *dsl.Resource) {
			foo.Cache = dsl.CacheLive
			begins(s)
			leaves(s)
			returns(s)
			foo.ObservedGeneration = false
			s.Process.Restart()
			s.size(2)
			s.Called("h update")
			leaves(s)
			returns(s)
		}},
		"a server that takes no status for a while": {nil, func(s *stage, _ *dsl.Resource) {
			begins(s)
			end := s.FailWhile("patch", foos+"/status", errAgain)
			s.set("lead", "metadata", "labels", "tier")
			s.Advance(time.Minute)
			end()
			s.Advance(time.Hour)
			s.Take()
			s.finalizers()
			returns(s)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { switched(t, true, selects(test.options...), test.play) })
	}
}

// TestANumberPastTheGenerationTellsNothing holds that an object is new that was restored with the status of an earlier one.
func TestANumberPastTheGenerationTellsNothing(t *testing.T) {
	switched(t, true, madeAndChanged, func(s *stage, _ *dsl.Resource) {
		s.Create(web)
		s.set(int64(5), "status", "observedGeneration")
		s.Launch()
		s.Called("made create", "h create")
		s.allObserved()
		s.Process.Restart()
		s.Called()
		s.Wrote("patch foos default/web", "patch foos/status default/web", "patch foos default/web")
	})
}

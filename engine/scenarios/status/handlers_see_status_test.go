// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestHandlersSeeStatusOfEachOther holds that handlers of a pass see the status that those before them
// set, and those that look at it are run for it.
func TestHandlersSeeStatusOfEachOther(t *testing.T) {
	first := func(_ context.Context, r *dsl.Request) error {
		color, _ := dsl.MustParsePath("spec.color").In(r.Object.Object)
		r.Patch.SetStatus("first", color)
		r.Patch.SetCondition("First", "True", "Set", "It is set.")
		return nil
	}
	sees := func(j *kit.Journal) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			value, _ := dsl.MustParsePath("status.first").In(r.Object.Object)
			list, _, _ := unstructured.NestedSlice(r.Object.Object, "status", "conditions")
			j.Add(fmt.Sprint("second ", r.Cause, " ", value, " ", len(list)))
			return nil
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a later one sees it, and its conditions": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("first", first)
				foo.OnReconcile("second", sees(j))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("second create red 1")
				s.Set("blue", "spec", "color")
				s.Called("second update blue 1")
			},
		},
		"one that looks at it alone runs for it, and for nothing else": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("second", sees(j), dsl.Field("status.first"))
				foo.OnReconcile("first", first)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("second update red 1")
				s.Resize(2)
				s.Called()
				s.Set("blue", "spec", "color")
				s.Called("second update blue 1")
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}

// TestAnExpressionReadsStatusThatAnotherHandlerSets holds that an expression over status is worked out from what another
// handler sets.
func TestAnExpressionReadsStatusThatAnotherHandlerSets(t *testing.T) {
	const head = `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: op}
resources:
  - resource: foos.v1.example.com
    handlers:
`
	const first = `
      - id: first
        set: {status: {first: "${self.spec.color}"}}
`
	const second = `
      - id: second
        set: {status: {second: "${self.?status.?first.orValue('')}"}}
`
	const third = `
      - id: third
        set: {status: {third: "${self.?status.?second.orValue('')}"}}
`
	tests := map[string]struct {
		handlers string
		// writes is how many a change costs at the most.
		writes int
	}{
		"in declared order, all in one pass": {first + second + third, 1},
		"in the opposite order, in a few":    {third + second + first, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scene.PlayConfiguration(t, head+test.handlers, func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				for _, color := range []string{"red", "blue"} {
					s.Set(color, "spec", "color")
					s.WantStatus(map[string]any{"first": color, "second": color, "third": color})
					if writes := s.Process.Writes(); len(writes) > test.writes {
						s.T.Errorf("%d writes for color %s, want %d at the most: %v", len(writes), color, test.writes, writes)
					}
				}
				s.Advance(time.Hour)
				s.Process.Restart()
				s.Wrote()
			})
		})
	}
}

// TestChangesOfMetadataAreSeenWithObservedGeneration holds that handlers see changes of labels and annotations where
// status.observedGeneration says what of the spec was handled.
func TestChangesOfMetadataAreSeenWithObservedGeneration(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.ObservedGeneration = true
			scene.Syncs(foo, &s.Journal)
			foo.OnReconcile("labels", s.Note("labels"), dsl.Field("metadata.labels"))
			foo.OnReconcile("color", s.Note("color"), dsl.Field("spec.color"))
			foo.On(scene.CreateAndUpdate(), "spec", s.Note("spec"), dsl.Field("spec"), dsl.NoOld())
		})
		s.Launch()
		s.Create(scene.Web)
		s.Called("sync create", "color create", "spec create")
		s.Set("gold", "metadata", "labels", "tier")
		s.Called("sync update", "labels update")
		s.Set("x", "metadata", "annotations", "note")
		s.Called("sync update")
		s.Resize(2)
		s.Called("sync update", "spec update")
		s.Set("blue", "spec", "color")
		s.Called("sync update", "color update", "spec update")
		s.Process.Writes()
		s.Set("x", "status", "theirs")
		s.Advance(time.Hour)
		s.Called()
		s.Wrote()
	})
}

// TestObservedGenerationDoesNotReplaceProgress holds that status.observedGeneration, which is behind while a handler is not
// through, does not take the place of what the others have done.
func TestObservedGenerationDoesNotReplaceProgress(t *testing.T) {
	spec := dsl.Field("spec")
	tests := map[string]scene.Scenario{
		"a creation that one is still trying": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("first", j.Note("first"), spec)
			foo.OnCreate("second", j.Note("second", scene.RetriesAfter(10*time.Minute)), spec)
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("first create", "second create")
			s.Advance(time.Minute)
		}},
		"a change that one is still trying": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "first", j.Note("first"), spec, dsl.NoOld())
			foo.On(scene.CreateAndUpdate(), "second", j.Note("second", scene.Succeeds, scene.RetriesAfter(10*time.Minute)), spec, dsl.NoOld())
		}, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			s.Called("first update", "second update")
			s.Advance(time.Minute)
		}},
		"a creation that one does not see": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("first", j.Note("first"), spec)
			foo.OnCreate("second", j.Note("second"), spec, dsl.Label("tier", "gold"))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("first create")
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
				s := scene.NewStage(t, c)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.ObservedGeneration = true
					test.Operator(foo, &s.Journal)
				})
				test.Play(s)
				s.Process.Restart()
				s.Called()
			})
		})
	}
}

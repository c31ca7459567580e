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

// TestHandlersSeeStatusOfEachOther holds that handlers of a reconcile see the status that those before them
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

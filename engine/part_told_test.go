// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// TestWhatSubHandlersLookAt holds what their filters on fields and indexes say.
func TestWhatSubHandlersLookAt(t *testing.T) {
	fields := map[string][]dsl.Option{"size": {dsl.Field("spec.size")}, "color": {dsl.Field("spec.color")}, "none": {dsl.Field("spec.none", "spec.nothing")}}
	diff := func(j *journal) dsl.Func {
		return func(_ ctx, r *dsl.Request) error {
			for _, c := range r.Diff {
				j.Add(c.Path.String())
			}
			return nil
		}
	}
	scenarios(t, map[string]scenario{
		"where what was handled is known, one of the fields must have changed, and these changes are all that there are": {
			func(foo *dsl.Resource, j *journal) {
				then := map[string]dsl.Func{"size": diff(j), "color": diff(j)}
				foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "all", inParts(j, then, fields, "size", "color", "none"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/size create 1", "all/color create 1")
				s.size(2)
				s.Called("all/size update 1", "spec.size")
				s.set("blue", "spec", "color")
				s.Called("all/color update 1", "spec.color")
				s.set("x", "spec", "nothing")
				s.Called("all/none update 1")
			},
		},
		"in a level-triggered handler, one of them must be there": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("all", inParts(j, nil, fields, "size", "color", "none"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("all/size create 1", "all/color create 1")
				s.size(2)
				s.Called("all/size update 1", "all/color update 1")
			},
		},
		"their filters read indexes, and a change of what they read runs them": {
			func(foo *dsl.Resource, j *journal) {
				when := dsl.When(func(s *dsl.Subject) (bool, error) {
					owners, err := dsl.Index[string, valued](s, "owners")
					if err != nil {
						return false, err
					}
					found, err := owners.Get(s.Object.GetName())
					return len(found) > 0, err
				})
				foo.OnReconcile("all", inParts(j, nil, map[string][]dsl.Option{"owned": {when}}, "owned", "any"))
			},
			func(s *stage) {
				s.indexed()
				s.Create(web)
				s.Called("all/any create 1")
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {for: web, v: "1"}}`)
				s.Called("all/owned index 1", "all/any index 1")
				s.Delete(configMaps, "default", "one")
				s.Called("all/any index 1")
			},
		},
	})
}

// TestFailuresOfSubHandlersAreTold holds that they are seen as those of handlers are.
func TestFailuresOfSubHandlersAreTold(t *testing.T) {
	t.Run("from the third on there are an Event and the condition, until it works again", func(t *testing.T) {
		conditioned(t, func(foo *dsl.Resource) {
			foo.OnReconcile("all", inParts(new(journal), map[string]dsl.Func{"a": failsFirst(4, dsl.Temporary(errAgain, time.Minute))}, nil, "a", "b"))
		}, func(s *stage) {
			s.Advance(time.Minute)
			if events := s.Events(); len(events) > 0 {
				s.t.Errorf("after two failures there are %+v", events)
			}
			s.Advance(time.Minute)
			const want = "Handler all keeps failing, and is tried again: waiting for sub-handlers (a: not yet)"
			if events := s.Events(); len(events) != 1 || events[0].Note != want {
				s.t.Errorf("after three failures there are %+v", events)
			}
			if got := message(s.web(), "HandlersFailing"); !strings.Contains(got, "all: waiting for sub-handlers (a: not yet)") {
				s.t.Errorf("the condition says %q", got)
			}
			s.Advance(time.Hour)
			if got := message(s.web(), "HandlersFailing"); got != "" {
				s.t.Errorf("once it works the condition says %q", got)
			}
		})
	})
	t.Run("metrics count them together", func(t *testing.T) {
		enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
			c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
			s, metrics := newStage(t, c), ops.NewMetrics()
			s.Operator.Resource(foos, func(foo *dsl.Resource) {
				foo.OnReconcile("all", inParts(&s.Journal, map[string]dsl.Func{"a": failsFirst(1, dsl.Temporary(errAgain, time.Minute))}, nil, "a", "b", "c"))
			})
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Settle()
			s.Create(web)
			s.Advance(time.Hour)
			for _, want := range []struct {
				handler, outcome string
				runs             float64
			}{{"all/*", "success", 3}, {"all/*", "retry", 1}, {"all", "waiting", 1}, {"all", "success", 1}} {
				if got := runsOf(t, metrics, want.handler, want.outcome); got != want.runs {
					t.Errorf("%s has %v runs with the outcome %s, want %v", want.handler, got, want.outcome, want.runs)
				}
			}
		})
	})
	t.Run("one that was refused runs as soon as the right is given", func(t *testing.T) {
		perform(t, scenario{func(foo *dsl.Resource, j *journal) {
			foo.Owns(configMaps)
			foo.OnReconcile("all", inParts(j, map[string]dsl.Func{"a": making("one", "one")}, map[string][]dsl.Option{"a": {dsl.WithBackoff(time.Hour, time.Hour)}}, "a"),
				dsl.Needs("create,patch", configMaps))
		}, func(s *stage) {
			s.Forbid("create", configMaps)
			s.Forbid("patch", configMaps)
			s.Launch()
			s.Create(sharing)
			s.Advance(time.Second)
			if got := s.made(); len(got) > 0 {
				s.t.Fatalf("there are %v", got)
			}
			s.Allow("create", configMaps)
			s.Allow("patch", configMaps)
			s.Advance(5 * time.Minute)
			if got := s.made(); len(got) != 1 {
				s.t.Errorf("with the right there are %v", got)
			}
		}})
	})
}

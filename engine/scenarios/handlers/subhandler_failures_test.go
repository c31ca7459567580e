// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestSubHandlersRunForTheirOwnFieldsAndIndexes holds what their filters on fields and indexes say.
func TestSubHandlersRunForTheirOwnFieldsAndIndexes(t *testing.T) {
	fields := map[string][]dsl.Option{"size": {dsl.Field("spec.size")}, "color": {dsl.Field("spec.color")}, "none": {dsl.Field("spec.none", "spec.nothing")}}
	diff := func(j *kit.Journal) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			for _, c := range r.Diff {
				j.Add(c.Path.String())
			}
			return nil
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"where what was handled is known, one of the fields must have changed, and these changes are all that there are": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				then := map[string]dsl.Func{"size": diff(j), "color": diff(j)}
				foo.On([]dsl.Cause{dsl.Create, dsl.Update}, "all", scene.DeclaresSubHandlers(j, then, fields, "size", "color", "none"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/size create 1", "all/color create 1")
				s.Resize(2)
				s.Called("all/size update 1", "spec.size")
				s.Set("blue", "spec", "color")
				s.Called("all/color update 1", "spec.color")
				s.Set("x", "spec", "nothing")
				s.Called("all/none update 1")
			},
		},
		"in a level-triggered handler, one of them must be there": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("all", scene.DeclaresSubHandlers(j, nil, fields, "size", "color", "none"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("all/size create 1", "all/color create 1")
				s.Resize(2)
				s.Called("all/size update 1", "all/color update 1")
			},
		},
		"their filters read indexes, and a change of what they read runs them": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				when := dsl.When(func(s *dsl.Subject) (bool, error) {
					owners, err := dsl.Index[string, scene.IndexedValue](s, "owners")
					if err != nil {
						return false, err
					}
					found, err := owners.Get(s.Object.GetName())
					return len(found) > 0, err
				})
				foo.OnReconcile("all", scene.DeclaresSubHandlers(j, nil, map[string][]dsl.Option{"owned": {when}}, "owned", "any"))
			},
			Play: func(s *scene.Stage) {
				s.LaunchWithIndex()
				s.Create(scene.Web)
				s.Called("all/any create 1")
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {for: web, v: "1"}}`)
				s.Called("all/owned index 1", "all/any index 1")
				s.Delete(scene.ConfigMaps, "default", "one")
				s.Called("all/any index 1")
			},
		},
	})
}

// TestFailuresOfSubHandlersAreSeenLikeThoseOfHandlers holds that they are seen as those of handlers are.
func TestFailuresOfSubHandlersAreSeenLikeThoseOfHandlers(t *testing.T) {
	t.Run("from the third on there are an Event and the condition, until it works again", func(t *testing.T) {
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.OnReconcile("all", scene.DeclaresSubHandlers(new(kit.Journal), map[string]dsl.Func{"a": scene.FailsFirst(4, dsl.Temporary(scene.ErrAgain, time.Minute))}, nil, "a", "b"))
		}, func(s *scene.Stage) {
			s.Advance(time.Minute)
			if events := s.Events(); len(events) > 0 {
				s.T.Errorf("after two failures there are %+v", events)
			}
			s.Advance(time.Minute)
			const want = "Handler all keeps failing, and is tried again: waiting for sub-handlers (a: not yet)"
			if events := s.Events(); len(events) != 1 || events[0].Note != want {
				s.T.Errorf("after three failures there are %+v", events)
			}
			if got := scene.ConditionMessage(s.Web(), "HandlersFailing"); !strings.Contains(got, "all: waiting for sub-handlers (a: not yet)") {
				s.T.Errorf("the condition says %q", got)
			}
			s.Advance(time.Hour)
			if got := scene.ConditionMessage(s.Web(), "HandlersFailing"); got != "" {
				s.T.Errorf("once it works the condition says %q", got)
			}
		})
	})
	t.Run("metrics count them together", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
			s, metrics := scene.NewStage(t, c), ops.NewMetrics()
			s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
				foo.OnReconcile("all", scene.DeclaresSubHandlers(&s.Journal, map[string]dsl.Func{"a": scene.FailsFirst(1, dsl.Temporary(scene.ErrAgain, time.Minute))}, nil, "a", "b", "c"))
			})
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Settle()
			s.Create(scene.Web)
			s.Advance(time.Hour)
			for _, want := range []struct {
				handler, outcome string
				runs             float64
			}{{"all/*", "success", 3}, {"all/*", "retry", 1}, {"all", "waiting", 1}, {"all", "success", 1}} {
				if got := scene.CountedRuns(t, metrics, want.handler, want.outcome); got != want.runs {
					t.Errorf("%s has %v runs with the outcome %s, want %v", want.handler, got, want.outcome, want.runs)
				}
			}
		})
	})
	t.Run("one that was refused runs as soon as the right is given", func(t *testing.T) {
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.ConfigMaps)
			foo.OnReconcile("all", scene.DeclaresSubHandlers(j, map[string]dsl.Func{"a": scene.MakesShared("one", "one")}, map[string][]dsl.Option{"a": {dsl.WithBackoff(time.Hour, time.Hour)}}, "a"),
				dsl.Needs("create,patch", scene.ConfigMaps))
		}, Play: func(s *scene.Stage) {
			s.Forbid("create", scene.ConfigMaps)
			s.Forbid("patch", scene.ConfigMaps)
			s.Launch()
			s.Create(scene.WebThatShares)
			s.Advance(time.Second)
			if got := childrenByKey(s); len(got) > 0 {
				s.T.Fatalf("there are %v", got)
			}
			s.Allow("create", scene.ConfigMaps)
			s.Allow("patch", scene.ConfigMaps)
			s.Advance(5 * time.Minute)
			if got := childrenByKey(s); len(got) != 1 {
				s.T.Errorf("with the right there are %v", got)
			}
		}})
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// ofStatus is the write of web's status.
const ofStatus = "patch foos/status default/web"

// setsStatus is for handlers in Go that set the status.
func setsStatus() dsl.Option { return dsl.Needs("patch", "self/status") }

// wantObserved fails the test unless web's status.observedGeneration is so; zero for none.
func wantObserved(s *scene.Stage, want int64) {
	s.T.Helper()
	got, found, _ := unstructured.NestedInt64(s.Web().Object, "status", "observedGeneration")
	if got != want || found != (want > 0) {
		s.T.Errorf("status.observedGeneration is %d, want %d", got, want)
	}
}

// TestTheEngineSetsTheObservedGeneration holds that status.observedGeneration costs no write beside others of the status, and at most
// one for each generation.
func TestTheEngineSetsTheObservedGeneration(t *testing.T) {
	const whole = "patch foos default/web"
	tests := map[string]struct {
		operator func(foo *dsl.Resource, j *kit.Journal)
		play     func(s *scene.Stage)
	}{
		"with the rest of the status": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("report", scene.ReportsSize, setsStatus())
		}, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(ofStatus)
			wantObserved(s, 1)
			s.Resize(2)
			s.Wrote(ofStatus)
			wantObserved(s, 2)
		}},
		"alone, where nothing else of the status changes": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("report", j.Note("report", scene.ReportsSize), dsl.Field("spec.size"), setsStatus())
		}, func(s *scene.Stage) {
			s.Begin()
			s.Set("blue", "spec", "color")
			s.Called()
			s.Wrote(ofStatus)
			wantObserved(s, 2)
			s.Set("x", "metadata", "labels", "tier")
			s.Set("x", "status", "theirs")
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
		}},
		"before the object, whose write says that all is handled": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "h", j.Note("h"), setsStatus())
		}, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(ofStatus, whole)
			wantObserved(s, 1)
		}},
		"not before handlers are through": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("h", j.Note("h", scene.RetriesAfter(scene.Late), scene.Succeeds), setsStatus())
		}, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("h create")
			s.Wrote()
			wantObserved(s, 0)
			s.Advance(scene.Late)
			s.Called("h create 2")
			s.Wrote(ofStatus)
			wantObserved(s, 1)
		}},
		"but with what another handler reports": {func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("h", j.Note("h", scene.RetriesAfter(time.Hour)))
			foo.OnReconcile("report", scene.ReportsSize, setsStatus())
		}, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(ofStatus)
			wantObserved(s, 1)
		}},
		"after one has failed for good": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("h", scene.Fails(dsl.Permanent(scene.ErrAgain)), setsStatus())
		}, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(ofStatus)
			wantObserved(s, 1)
		}},
		"in place of what a handler sets": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("h", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("observedGeneration", int64(7))
				return nil
			}, setsStatus())
		}, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(ofStatus)
			wantObserved(s, 1)
			s.Set("x", "metadata", "labels", "tier")
			s.Wrote()
			wantObserved(s, 1)
		}},
		"and in place of that of a restored object": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("report", scene.ReportsSize, setsStatus())
		}, func(s *scene.Stage) {
			s.Create(scene.Web)
			s.Set(int64(7), "status", "observedGeneration")
			s.Launch()
			s.Wrote(ofStatus)
			wantObserved(s, 1)
		}},
		"of the generation that a handler makes, too": {func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("h", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Set("spec.color", "green")
				return nil
			}, setsStatus())
		}, func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote(ofStatus, whole, ofStatus)
			wantObserved(s, 2)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			playServed(t, kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true}, test.operator, test.play)
		})
	}
}

// playServed plays with a resource of the operator.
func playServed(t *testing.T, served kit.Resource, operator func(foo *dsl.Resource, j *kit.Journal), play func(s *scene.Stage)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(served)
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { operator(foo, &s.Journal) })
		play(s)
	})
}

// TestTheEngineLeavesOtherObservedGenerations holds that the engine sets no status.observedGeneration that the schema does not have, or
// that is another controller's.
func TestTheEngineLeavesOtherObservedGenerations(t *testing.T) {
	foos := kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true}
	without, plain := foos, foos
	without.ObservedGeneration, plain.NoStatus = false, true
	reports := func(options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("report", scene.ReportsSize, append(options, setsStatus())...)
		}
	}
	tests := map[string]struct {
		served   kit.Resource
		operator func(foo *dsl.Resource, j *kit.Journal)
		writes   []string
	}{
		"the schema does not have it":        {without, reports(), []string{ofStatus}},
		"the status is no subresource":       {plain, reports(), []string{"patch foos default/web"}},
		"no handler sees the object":         {foos, reports(dsl.Label("tier", "gold")), nil},
		"no handler sets the status":         {foos, func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("look", j.Note("look")) }, nil},
		"the cache does not show the status": {foos, func(foo *dsl.Resource, j *kit.Journal) { foo.Cache = dsl.CacheMetadata; reports()(foo, j) }, nil},
		"only the status that is offered is needed": {foos, func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("look", j.Note("look"), dsl.WithNeeds(dsl.Need{Verbs: []string{"patch"}, Subresource: "status", Offered: true}))
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			playServed(t, test.served, test.operator, func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				if test.writes != nil {
					s.Wrote(test.writes...)
				}
				wantObserved(s, 0)
			})
		})
	}
}

// TestTheObservedGenerationOfABuiltInKindIsItsControllers holds that the engine leaves it, also where a handler sets the status.
func TestTheObservedGenerationOfABuiltInKindIsItsControllers(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Deployments, func(r *dsl.Resource) {
			r.OnReconcile("h", s.Note("h"), setsStatus())
		})
		s.Launch()
		s.Create(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0, selector: {matchLabels: {a: b}},
			template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`)
		s.Called("h create")
		s.Wrote()
	})
}

// TestTheObservedGenerationGoesWithReady holds that one write has both, for a generation that is not ready, too.
func TestTheObservedGenerationGoesWithReady(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
		c.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { whenAsked(nil, scene.ErrAgain, nil)(foo, &s.Journal) })
		s.Launch()
		s.Create(scene.Web)
		wantReadyCondition(s, "at first", `1 True AllReady ""`)
		s.Wrote(ofStatus)
		wantObserved(s, 1)
		s.Resize(2)
		wantReadyCondition(s, "after a failure", `2 False Reconciling "Handler bar: it is not through yet"`)
		s.Wrote(ofStatus)
		wantObserved(s, 2)
		s.Advance(time.Minute)
		wantReadyCondition(s, "in the end", `2 True AllReady ""`)
		s.Wrote(ofStatus)
		s.Process.Restart()
		s.Advance(time.Hour)
		s.Wrote()
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAPermanentFailureIsTriedAgainAfterAChange is law 1 for handlers that failed for good: they run again when what they
// look at changes, for the cause that they failed with.
func TestAPermanentFailureIsTriedAgainAfterAChange(t *testing.T) {
	good := scene.Fails(dsl.Permanent(scene.ErrAgain))
	alone := func(options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnCreate("made", j.Note("made", good, scene.Succeeds), options...)
		}
	}
	beside := func(foo *dsl.Resource, j *kit.Journal) {
		alone(dsl.Field("spec.size"))(foo, j)
		foo.OnUpdate("changed", j.Note("changed"))
	}
	// mends: a change is what it takes, once.
	mends := func(s *scene.Stage) {
		s.T.Helper()
		s.Resize(2)
		s.Called("made create")
		s.Resize(3)
		s.Advance(time.Hour)
		s.Called()
		s.Process.Restart()
		s.Called()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a create handler runs again when the spec is mended": {Operator: alone(), Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Hour)
			s.Called()
			mends(s)
		}},
		"the same after a restart": {Operator: alone(), Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Restart()
			s.Called()
			mends(s)
		}},
		"the same when its retries are used up": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made", scene.Fails(scene.ErrAgain), scene.Fails(scene.ErrAgain), scene.Succeeds), dsl.Retries(1))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Hour)
				s.Called("made create 2")
				mends(s)
			},
		},
		"the same when it is mended while no process runs": {Operator: alone(), Play: func(s *scene.Stage) {
			s.Begin()
			scene.Stop(s)
			s.Resize(2)
			s.Process.Restart()
			s.Called("made create")
			s.Process.Restart()
			s.Called()
		}},
		"it does not run for what it does not look at": {Operator: beside, Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("blue", "spec", "color")
			s.Called("changed update")
			s.Resize(2)
			s.Called("made create", "changed update")
			s.Resize(3)
			s.Called("changed update")
		}},
		"an update handler runs again, and sees what it has not handled": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnUpdate("changed", j.Note("changed", func(ctx context.Context, r *dsl.Request) error {
					_ = scene.NotesOld(j)(ctx, r)
					return dsl.Permanent(scene.ErrAgain)
				}, scene.NotesOld(j)))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Called("changed update", "update map[spec:map[color:red size:1]] [change spec.size 1 2]")
				s.Process.Restart()
				s.Called()
				s.Resize(3)
				s.Settle()
				if got := s.Take(); len(got) != 2 || got[0] != "changed update" {
					s.T.Errorf("calls %v", got)
				}
			},
		},
	})
}

// TestAHandlerRunsWhenTheOneBeforeItSucceedsAtLast is law 1 for handlers that come after one that failed for good: they have
// not failed, and run when that one has succeeded at last, whatever it ran for.
func TestAHandlerRunsWhenTheOneBeforeItSucceedsAtLast(t *testing.T) {
	good := scene.Fails(dsl.Permanent(scene.ErrAgain))
	onSize, onColor := dsl.Field("spec.size"), dsl.Field("spec.color")
	// chain declares first, which fails for good once, and second, which comes after it.
	chain := func(second []dsl.Cause, first ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "first", j.Note("first", good, scene.Succeeds), append(first, onSize)...)
			foo.On(second, "second", j.Note("second"), onColor, dsl.After("first"))
		}
	}
	edge, reconcile := scene.CreateAndUpdate(), []dsl.Cause{dsl.Reconcile}
	mends := func(s *scene.Stage) {
		s.T.Helper()
		s.Begin()
		s.Resize(2)
		s.Called("first update", "second create")
		s.Advance(time.Hour)
		s.Called()
		s.Process.Restart()
		s.Forget()
		s.Set("blue", "spec", "color")
		s.Called("second update")
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it runs when what that one looks at was mended": {Operator: chain(edge), Play: mends},
		"the same where it is level-triggered":           {Operator: chain(reconcile), Play: mends},
		"the same where that one is level-triggered": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("first", j.Note("first", good, scene.Succeeds), onSize)
				foo.On(scene.CreateAndUpdate(), "second", j.Note("second"), onColor, dsl.After("first"))
			}, Play: mends,
		},
		"the same after a restart": {Operator: chain(edge), Play: func(s *scene.Stage) {
			s.Begin()
			s.Process.Restart()
			s.Called()
			s.Resize(2)
			s.Called("first update", "second create")
		}},
		"the same when it was mended while no process ran": {Operator: chain(edge), Play: func(s *scene.Stage) {
			s.Begin()
			scene.Stop(s)
			s.Resize(2)
			s.Process.Restart()
			s.Called("first update", "second create")
		}},
		"what it looks at has changed meanwhile, too": {Operator: chain(edge), Play: func(s *scene.Stage) {
			s.Begin()
			s.Set("blue", "spec", "color")
			s.Called()
			s.Resize(2)
			s.Called("first update", "second create")
			s.Advance(time.Hour)
			s.Called()
		}},
		"it runs when that one succeeds for a child": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("child", scene.KeepsDeployment)
				chain(edge, scene.AlsoFor(dsl.Child))(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.RollOut(1)
				s.Called("first child", "second create")
				s.RollOut(2)
				s.Called("first child")
			},
		},
		"it runs when that one succeeds for a related object": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Select: scene.RelatedByLabel})
				chain(edge, scene.AlsoFor(dsl.RelatedChange))(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, labels: {app: web}}}`)
				s.Called("first related", "second create")
			},
		},
		"it runs when that one succeeds for its timer": {
			Operator: chain(edge, scene.AlsoFor(dsl.Timer), dsl.At(scene.WithoutJitter(dsl.Timing{Every: time.Minute}))), Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Minute)
				s.Called("first timer", "second create")
				s.Advance(time.Minute)
				s.Called("first timer")
			},
		},
		"it runs when that one succeeds for a resync": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Resync = time.Hour
				chain(edge, scene.AlsoFor(dsl.Resync))(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Begin()
				// The first resync comes at a random time of the hour, the next one 54 minutes later at the soonest.
				for before := s.Len(); s.Len() == before; {
					s.Advance(time.Minute)
				}
				s.Called("first resync", "second create")
			},
		},
		"an update that was held up runs when that one succeeds": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "first", j.Note("first", scene.Succeeds, good, scene.Succeeds), onSize)
				foo.On(scene.CreateAndUpdate(), "second", j.Note("second"), onColor, dsl.After("first"))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
					o.Object["spec"] = map[string]any{"size": int64(2), "color": "blue"}
				})
				s.Called("first update")
				s.Resize(3)
				s.Called("first update", "second update")
			},
		},
		"it is not counted as one that failed": {Operator: chain(edge), Play: func(s *scene.Stage) {
			metrics := ops.NewMetrics()
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Create(scene.Web)
			s.Advance(time.Hour)
			first, second := scene.CountedRuns(s.T, metrics, "first", "failed"), scene.CountedRuns(s.T, metrics, "second", "failed")
			if first != 1 || second != 0 {
				s.T.Errorf("%v runs of the first are counted as failed, want 1, and %v of the second, want none", first, second)
			}
		}},
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestASuccessIsStoredWhileAnotherHandlerIsUnfinished is law 2 for a handler that succeeded while another one of its object
// is not done: its success is stored once it is clear that the other one takes its time, for one write.
func TestASuccessIsStoredWhileAnotherHandlerIsUnfinished(t *testing.T) {
	waits := scene.Fails(dsl.Waiting("rain", time.Hour))
	// beside declares a handler that succeeds and one that does not.
	beside := func(open dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(scene.CreateAndUpdate(), "steady", j.Note("steady"))
			foo.On(scene.CreateAndUpdate(), "open", open)
		}
	}
	// remembers: restarts repeat nothing, and the hours between them cost nothing.
	remembers := func(s *scene.Stage) {
		s.T.Helper()
		s.Advance(time.Minute)
		s.Called("steady create")
		s.Wrote("patch foos default/web")
		s.Advance(time.Hour)
		s.Wrote()
		for range 3 {
			s.Process.Restart()
			s.Advance(time.Minute)
			s.Called()
			s.Wrote()
		}
		s.Resize(2)
		s.Advance(time.Minute)
		s.Called("steady update")
		s.Wrote("patch foos default/web")
		s.Process.Restart()
		s.Called()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"beside one that waits": {Operator: beside(waits), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			remembers(s)
		}},
		"beside one that is tried every five seconds": {Operator: beside(scene.RetriesAfter(scene.Soon)), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			remembers(s)
		}},
		"beside one that comes after one that waits": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				beside(waits)(foo, j)
				foo.On(scene.CreateAndUpdate(), "next", j.Note("next"), dsl.After("open"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				remembers(s)
			},
		},
		"beside one that waits, when it is killed": {Operator: beside(waits), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Minute)
			s.Called("steady create")
			s.Process.Kill()
			s.Process.Restart()
			s.Called()
		}},
		"beside one that is soon done it costs no write of its own": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "steady", j.Note("steady"))
				foo.On(scene.CreateAndUpdate(), "open", j.Note("open", scene.RetriesAfter(scene.Soon), scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("steady create", "open create", "open create 2")
				s.Wrote("patch foos default/web")
			},
		},
		"beside a level-triggered one that waits it is stored at once": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "steady", j.Note("steady"))
				foo.OnReconcile("open", waits)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("steady create")
				s.Wrote("patch foos default/web")
				s.Process.Restart()
				s.Called()
			},
		},
	})
}

// TestADeleteHandlerThatSucceededIsNotRunAgain is law 2 for deletions: a delete handler that has succeeded is not run
// again for the same deletion.
func TestADeleteHandlerThatSucceededIsNotRunAgain(t *testing.T) {
	beside := func(second ...dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("one", j.Note("one"))
			foo.OnDelete("two", j.Note("two", second...))
		}
	}
	waits := scene.Fails(dsl.Waiting("rain", 10*time.Minute))
	scene.PlayAll(t, map[string]scene.Scenario{
		"beside one that waits, when the process ends": {Operator: beside(waits, waits, scene.Succeeds), Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("one delete", "two delete")
			s.Advance(time.Minute)
			s.Process.Restart()
			s.Called("two delete")
			s.Process.Restart()
			s.Called("two delete")
			s.WantGone()
		}},
		"beside one that waits, when the process is killed": {Operator: beside(waits, scene.Succeeds), Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("one delete", "two delete")
			s.Advance(time.Minute)
			s.Process.Kill()
			s.Process.Restart()
			s.Called("two delete")
			s.WantGone()
		}},
		"beside one that waits, when the finalizer is taken by hand": {Operator: beside(waits, scene.Succeeds), Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("one delete", "two delete")
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(20 * time.Minute)
			s.Called("two delete")
		}},
		"beside one that waits, when the CRD goes and the finalizer is taken by hand": {Operator: beside(waits, scene.Succeeds), Play: func(s *scene.Stage) {
			s.Begin()
			s.Unserve(scene.Foos)
			s.Advance(time.Second)
			s.Called("one delete", "two delete")
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(20 * time.Minute)
			s.Called("two delete")
		}},
		"beside one that waits, when the CRD goes and no watch shows that the finalizer was taken by hand": {Operator: beside(waits, scene.Succeeds), Play: func(s *scene.Stage) {
			s.Begin()
			s.Unserve(scene.Foos)
			s.Advance(time.Second)
			s.Called("one delete", "two delete")
			s.HoldWatches(scene.Foos)
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Advance(20 * time.Minute)
			s.Called("two delete")
		}},
		"beside one that is tried every five seconds, when the process ends": {Operator: beside(scene.RetriesAfter(scene.Soon)), Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Advance(time.Minute)
			s.Forget()
			s.Process.Restart()
			s.Advance(time.Minute)
			for _, call := range s.Take() {
				if call == "one delete" {
					s.T.Error("the one that was done ran again")
				}
			}
		}},
	})
}

// TestADeleteHandlerRunsOnceWhenItsCRDGoes holds the same when the object goes with its CRD, whatever becomes of the
// write that takes the finalizer.
func TestADeleteHandlerRunsOnceWhenItsCRDGoes(t *testing.T) {
	var s *scene.Stage
	// forced: somebody takes the finalizer by hand while the handler runs, so object and CRD are gone when
	// it returns.
	forced := func(context.Context, *dsl.Request) error {
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
		time.Sleep(5 * time.Second) // of the bubble: that long the handler takes
		return nil
	}
	tests := map[string]struct {
		left   dsl.Func
		before func()
	}{
		"the write is made":                        {scene.Succeeds, func() {}},
		"its answer comes late":                    {scene.Succeeds, func() { s.DelayNext("patch", scene.Foos, 10*time.Second) }},
		"its answer is lost":                       {scene.Succeeds, func() { s.LoseNext("patch", scene.Foos) }},
		"the resource is gone before it is made":   {forced, func() {}},
		"the watch has shown nothing of it so far": {scene.Succeeds, func() { s.HoldWatches(scene.Foos) }},
		"the resource is gone before it is made, and no watch has shown it": {func(ctx context.Context, r *dsl.Request) error {
			s.HoldWatches(scene.Foos)
			return forced(ctx, r)
		}, func() {}},
	}
	operators := map[string]func(foo *dsl.Resource, j *kit.Journal){
		"": func(*dsl.Resource, *kit.Journal) {}, ", with a handler beside": scene.Syncs,
	}
	for name, test := range tests {
		for which, more := range operators {
			t.Run(name+which, func(t *testing.T) {
				scene.Play(t, scene.Scenario{
					Operator: func(foo *dsl.Resource, j *kit.Journal) {
						foo.OnDelete("left", j.Note("left", test.left))
						more(foo, j)
					}, Play: func(on *scene.Stage) {
						s = on
						s.Begin()
						test.before()
						s.Unserve(scene.Foos)
						s.Advance(10 * time.Second)
						s.ReleaseWatches(scene.Foos)
						s.Advance(10 * time.Minute)
						s.Called("left delete")
					},
				})
			})
		}
	}
}

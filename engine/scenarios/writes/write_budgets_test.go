// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestEachSituationCostsItsBudgetOfWrites is law 5: the number of write requests of each situation.
func TestEachSituationCostsItsBudgetOfWrites(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a level-triggered handler needs none": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote()
			s.Resize(2)
			s.Wrote()
		}},
		"one create handler needs one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Wrote("patch foos default/web")
			},
		},
		"one update handler needs one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("changed", j.Note("changed")) },
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(2)
				s.Wrote("patch foos default/web")
			},
		},
		"one that sets status needs two, the status first": {
			Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.On(scene.CreateAndUpdate(), "report", scene.Reports)
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Wrote("patch foos/status default/web", "patch foos default/web")
			},
		},
		"a level-triggered one that sets status needs one, and none when it is so": {
			Operator: func(foo *dsl.Resource, _ *kit.Journal) { foo.OnReconcile("report", scene.Reports) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Wrote("patch foos/status default/web")
				s.Set("x", "metadata", "labels", "tier")
				s.Wrote()
			},
		},
		"many that succeed need the same as one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				for _, id := range []string{"a", "b", "c", "d"} {
					foo.On(scene.CreateAndUpdate(), id, j.Note(id, scene.Reports))
				}
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Wrote("patch foos/status default/web", "patch foos default/web")
			},
		},
		"a finalizer at first sight costs one more, in the same pass": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made"))
				foo.OnDelete("left", j.Note("left"))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Wrote("patch foos default/web", "patch foos default/web")
				s.Called("made create")
			},
		},
		"a finalizer with nothing else to do costs one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("left", j.Note("left")) },
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Wrote("patch foos default/web")
			},
		},
		"a delete handler that succeeds costs one": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("left", j.Note("left")) },
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Wrote("patch foos default/web")
				if s.Web() != nil {
					s.T.Error("the object is still there")
				}
			},
		},
		"retries that are due within ten seconds cost nothing": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made", scene.RetriesAfter(scene.Soon), scene.RetriesAfter(scene.Soon), scene.RetriesAfter(scene.Soon), scene.Succeeds))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("made create", "made create 2", "made create 3", "made create 4")
				s.Wrote("patch foos default/web")
			},
		},
		"later ones cost one each": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("made", j.Note("made", scene.RetriesAfter(scene.Late), scene.RetriesAfter(scene.Late), scene.Succeeds))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("made create", "made create 2", "made create 3")
				s.Wrote("patch foos default/web", "patch foos default/web", "patch foos default/web")
			},
		},
		"children that are so already cost nothing": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Wrote("patch deployments default/web")
				s.Set("blue", "spec", "color")
				s.Wrote()
				s.Resize(2)
				s.Wrote("patch deployments default/web")
			},
		},
	})
}

// TestEachSituationCostsItsBudgetWithObservedGeneration is law 5 where the engine sets status.observedGeneration.
func TestEachSituationCostsItsBudgetWithObservedGeneration(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo", ObservedGeneration: true})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.On(scene.CreateAndUpdate(), "report", s.Note("report", scene.Reports), dsl.Field("spec"), dsl.Needs("patch", "self/status"))
		})
		s.Launch()
		s.Create(scene.Web)
		s.Called("report create")
		s.Wrote("patch foos/status default/web", "patch foos default/web")
		s.Resize(2)
		s.Called("report update")
		s.Wrote("patch foos/status default/web", "patch foos default/web")
		s.Set("x", "metadata", "labels", "tier")
		s.Process.Restart()
		s.Called()
		s.Wrote()
		if n, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "observedGeneration"); n != 2 {
			t.Errorf("status.observedGeneration is %d, want 2", n)
		}
	})
}

// TestNoChangeNoWrite is law 4, for operators of each kind.
func TestNoChangeNoWrite(t *testing.T) {
	operators := map[string]func(foo *dsl.Resource, j *kit.Journal){
		"level-triggered, with status and a child": func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.Resync = 10 * time.Minute
			foo.OnReconcile("report", j.Note("report", scene.Reports))
			foo.OnReconcile("child", j.Note("child", scene.KeepsDeployment))
		},
		"edge-triggered, with a finalizer": scene.EachCause,
		"of both kinds, with one that failed for good": func(foo *dsl.Resource, j *kit.Journal) {
			foo.Resync = 10 * time.Minute
			foo.On(scene.CreateAndUpdate(), "report", j.Note("report", scene.Reports))
			foo.OnCreate("broken", scene.Fails(dsl.Permanent(scene.ErrAgain)))
			foo.OnReconcile("sync", j.Note("sync"))
		},
		"that retries in vain": func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnReconcile("vain", scene.Fails(scene.ErrAgain))
		},
	}
	quiet := map[string]func(s *scene.Stage){
		"a restart":            func(s *scene.Stage) { s.Process.Restart() },
		"a killed process":     func(s *scene.Stage) { s.Process.Kill(); s.Process.Restart() },
		"a relist":             func(s *scene.Stage) { s.ExpireWatches(); s.Advance(time.Minute) },
		"an ended watch":       func(s *scene.Stage) { s.CutWatches(); s.Advance(time.Minute) },
		"a resync":             func(s *scene.Stage) { s.Advance(time.Hour) },
		"somebody's status":    func(s *scene.Stage) { s.Set("x", "status", "theirs") },
		"somebody's ownership": func(s *scene.Stage) { s.Apply("somebody", scene.Web) },
	}
	for name, operator := range operators {
		for cause, happens := range quiet {
			t.Run(cause+" of one "+name, func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: operator, Play: func(s *scene.Stage) {
					s.Begin()
					s.Advance(time.Hour)
					s.Forget()
					happens(s)
					s.Wrote()
				}})
			})
		}
	}
}

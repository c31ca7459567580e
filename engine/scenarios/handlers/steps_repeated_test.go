// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestDoneStepsAreRepeatedWhenTheirWorkMayBeUndone holds that steps which are done are repeated when what they did may not be so
// any more, and not otherwise.
func TestDoneStepsAreRepeatedWhenTheirWorkMayBeUndone(t *testing.T) {
	steps := func(j *kit.Journal) dsl.Func {
		return dsl.Steps(j.Note("first", scene.KeepsDeployment), j.Note("second", scene.Fails(scene.ErrAgain)))
	}
	rarely := dsl.WithBackoff(time.Hour, time.Hour)
	scene.PlayAll(t, map[string]scene.Scenario{
		"when a child has changed": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnReconcile("steps", steps(j), rarely)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("first create", "second create")
				s.Delete(scene.Deployments, "default", "web")
				s.Called("first create 2", "second create 2")
				if s.Get(scene.Deployments, "default", "web") == nil {
					s.T.Error("the child is not there again")
				}
				s.Advance(2 * time.Hour)
				s.Called("second create 2") // the look in between was no attempt
			},
		},
		"when a child has changed, where progress is stored": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "steps", steps(j), rarely)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("first create", "second create")
				s.Delete(scene.Deployments, "default", "web")
				s.Settle()
				s.Advance(2 * time.Hour)
				s.Called("first create 2", "second create 2", "second create 2")
			},
		},
		"when a child has changed while no process ran": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "steps",
					dsl.Steps(j.Note("first", scene.KeepsDeployment), j.Note("second", scene.Fails(dsl.Waiting("rain", time.Hour)))))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("first create", "second create")
				s.Advance(time.Minute)
				s.Process.Kill()
				s.Delete(scene.Deployments, "default", "web")
				s.Process.Restart()
				s.Called("first create", "second create")
				if s.Get(scene.Deployments, "default", "web") == nil {
					s.T.Error("the child is not there again")
				}
			},
		},
		"when a related object has changed while no process ran": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Select: scene.RelatedByName})
				foo.On([]dsl.Cause{dsl.Create, dsl.RelatedChange}, "steps",
					dsl.Steps(j.Note("first"), j.Note("second", scene.Fails(dsl.Waiting("rain", time.Hour)))))
			}, Play: func(s *scene.Stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {v: "1"}}`)
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {ref: web}}`)
				s.Called("first create", "second create")
				s.Advance(time.Minute)
				s.Process.Kill()
				s.Update(scene.ConfigMaps, "default", "web", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"v": "2"} })
				s.Process.Restart()
				s.Called("first create", "second create")
			},
		},
		"not for children that the handler does not look at": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("steps", steps(j), rarely)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("first create", "second create")
				s.Delete(scene.Deployments, "default", "web")
				s.Settle()
				s.Advance(2 * time.Hour)
				s.Called("second create 2")
			},
		},
		"not while the object is being deleted": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("child", scene.KeepsDeployment)
				foo.On([]dsl.Cause{dsl.Delete, dsl.Child}, "steps",
					dsl.Steps(j.Note("first"), j.Note("second", waitsFor(time.Hour))))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Remove()
				s.Called("first delete", "second delete")
				s.RollOut(0)
				s.Called("second delete")
			},
		},
	})
}

// TestADoneStepIsNotRepeated holds that a step is not repeated by the next process because the one after it waits, and that
// it is when it was done for another view.
func TestADoneStepIsNotRepeated(t *testing.T) {
	two := func(j *kit.Journal) dsl.Func {
		return dsl.Steps(j.Note("one"), j.Note("two", scene.Fails(dsl.Waiting("rain", 0))))
	}
	updates := func(foo *dsl.Resource, j *kit.Journal) { foo.OnUpdate("h", two(j), dsl.Field("spec.size")) }
	creates := func(foo *dsl.Resource, j *kit.Journal) { foo.OnCreate("made", two(j), dsl.Field("spec.size")) }
	// again is a change while the second step waits, an hour before the process ends.
	again := func(s *scene.Stage, c string, size int64) {
		s.T.Helper()
		s.Called("one "+c, "two "+c)
		s.Advance(11 * time.Second) // in which it is stored
		s.Take()
		s.Resize(size)
		s.Called("one "+c, "two "+c)
		s.Advance(time.Hour)
		s.Take()
		s.Process.Kill()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"of a creation": {Operator: creates, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("one create", "two create")
			s.Advance(3 * time.Hour)
			s.Take()
			s.Process.Restart()
			s.Called("two create")
		}},
		"of a deletion": {Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnDelete("bye", two(j)) }, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("one delete", "two delete")
			s.Advance(3 * time.Hour)
			s.Take()
			s.Process.Restart()
			s.Called("two delete")
		}},
		"of a change that came while the second waited for an earlier one": {Operator: updates, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			again(s, "update", 3)
			s.Process.Restart()
			s.Called("two update")
		}},
		"of such a change, which is taken back while no process runs": {Operator: updates, Play: func(s *scene.Stage) {
			s.Begin()
			s.Resize(2)
			again(s, "update", 3)
			s.Resize(2)
			s.Process.Restart()
			s.Called("one update", "two update")
		}},
		"of a creation, with a change that came while the second waited": {Operator: creates, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			again(s, "create", 3)
			s.Process.Restart()
			s.Called("two create")
		}},
		"of a creation, with such a change, which is taken back while no process runs": {Operator: creates, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			again(s, "create", 3)
			s.Resize(1)
			s.Process.Restart()
			s.Called("one create", "two create")
		}},
	})
}

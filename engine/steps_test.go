// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestStepsBeginAnew holds that steps which are done are repeated when what they did may not be so
// any more, and not otherwise.
func TestStepsBeginAnew(t *testing.T) {
	steps := func(j *journal) dsl.Func {
		return dsl.Steps(j.Note("first", keepsChild), j.Note("second", fails(errAgain)))
	}
	rarely := dsl.WithBackoff(time.Hour, time.Hour)
	scenarios(t, map[string]scenario{
		"when a child has changed": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("steps", steps(j), rarely)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("first create", "second create")
				s.Delete(deployments, "default", "web")
				s.Called("first create 2", "second create 2")
				if s.Get(deployments, "default", "web") == nil {
					s.t.Error("the child is not there again")
				}
				s.Advance(2 * time.Hour)
				s.Called("second create 2") // the look in between was no attempt
			},
		},
		"when a child has changed, where progress is stored": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "steps", steps(j), rarely)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("first create", "second create")
				s.Delete(deployments, "default", "web")
				s.Settle()
				s.Advance(2 * time.Hour)
				s.Called("first create 2", "second create 2", "second create 2")
			},
		},
		"when a child has changed while no process ran": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.On([]dsl.Cause{dsl.Create, dsl.Child}, "steps",
					dsl.Steps(j.Note("first", keepsChild), j.Note("second", fails(dsl.Waiting("rain", time.Hour)))))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("first create", "second create")
				s.Advance(time.Minute)
				s.Process.Kill()
				s.Delete(deployments, "default", "web")
				s.Process.Restart()
				s.Called("first create", "second create")
				if s.Get(deployments, "default", "web") == nil {
					s.t.Error("the child is not there again")
				}
			},
		},
		"when a related object has changed while no process ran": {
			func(foo *dsl.Resource, j *journal) {
				foo.Relates(dsl.Relation{Name: "them", Resource: dsl.ResourceName{Resource: "configmaps", Version: "v1"}, Select: byName})
				foo.On([]dsl.Cause{dsl.Create, dsl.RelatedChange}, "steps",
					dsl.Steps(j.Note("first"), j.Note("second", fails(dsl.Waiting("rain", time.Hour)))))
			}, func(s *stage) {
				s.Create(`{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {v: "1"}}`)
				s.Launch()
				s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: web}, spec: {ref: web}}`)
				s.Called("first create", "second create")
				s.Advance(time.Minute)
				s.Process.Kill()
				s.Update(configMaps, "default", "web", func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"v": "2"} })
				s.Process.Restart()
				s.Called("first create", "second create")
			},
		},
		"not for children that the handler does not look at": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnCreate("steps", steps(j), rarely)
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("first create", "second create")
				s.Delete(deployments, "default", "web")
				s.Settle()
				s.Advance(2 * time.Hour)
				s.Called("second create 2")
			},
		},
		"not while the object is being deleted": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnCreate("child", keepsChild)
				foo.On([]dsl.Cause{dsl.Delete, dsl.Child}, "steps",
					dsl.Steps(j.Note("first"), j.Note("second", waitsFor(time.Hour))))
			}, func(s *stage) {
				s.begin()
				s.remove()
				s.Called("first delete", "second delete")
				s.rollout(0)
				s.Called("second delete")
			},
		},
	})
}

// TestStepsThatAreDone holds that a step is not repeated by the next process because the one after it waits, and that
// it is when it was done for another view.
func TestStepsThatAreDone(t *testing.T) {
	two := func(j *journal) dsl.Func {
		return dsl.Steps(j.Note("one"), j.Note("two", fails(dsl.Waiting("rain", 0))))
	}
	updates := func(foo *dsl.Resource, j *journal) { foo.OnUpdate("h", two(j), dsl.Field("spec.size")) }
	creates := func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", two(j), dsl.Field("spec.size")) }
	// again is a change while the second step waits, an hour before the process ends.
	again := func(s *stage, c string, size int64) {
		s.t.Helper()
		s.Called("one "+c, "two "+c)
		s.Advance(11 * time.Second) // in which it is stored
		s.Take()
		s.size(size)
		s.Called("one "+c, "two "+c)
		s.Advance(time.Hour)
		s.Take()
		s.Process.Kill()
	}
	scenarios(t, map[string]scenario{
		"of a creation": {creates, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("one create", "two create")
			s.Advance(3 * time.Hour)
			s.Take()
			s.Process.Restart()
			s.Called("two create")
		}},
		"of a deletion": {func(foo *dsl.Resource, j *journal) { foo.OnDelete("bye", two(j)) }, func(s *stage) {
			s.begin()
			s.remove()
			s.Called("one delete", "two delete")
			s.Advance(3 * time.Hour)
			s.Take()
			s.Process.Restart()
			s.Called("two delete")
		}},
		"of a change that came while the second waited for an earlier one": {updates, func(s *stage) {
			s.begin()
			s.size(2)
			again(s, "update", 3)
			s.Process.Restart()
			s.Called("two update")
		}},
		"of such a change, which is taken back while no process runs": {updates, func(s *stage) {
			s.begin()
			s.size(2)
			again(s, "update", 3)
			s.size(2)
			s.Process.Restart()
			s.Called("one update", "two update")
		}},
		"of a creation, with a change that came while the second waited": {creates, func(s *stage) {
			s.Launch()
			s.Create(web)
			again(s, "create", 3)
			s.Process.Restart()
			s.Called("two create")
		}},
		"of a creation, with such a change, which is taken back while no process runs": {creates, func(s *stage) {
			s.Launch()
			s.Create(web)
			again(s, "create", 3)
			s.size(1)
			s.Process.Restart()
			s.Called("one create", "two create")
		}},
	})
}

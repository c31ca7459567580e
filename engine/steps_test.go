// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

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

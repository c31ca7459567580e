// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestRunAgainOutlivesFailedPasses holds that a handler runs again at the time that it asked for, whatever becomes of the requests
// of the pass in which it asked, and of those at that time.
func TestRunAgainOutlivesFailedPasses(t *testing.T) {
	internal := apierrors.NewInternalError(errAgain)
	polls := func(foo *dsl.Resource, j *journal) {
		foo.OnReconcile("polls", j.Note("polls", again(time.Hour, nil), again(time.Hour, nil), succeeds))
	}
	// beside has another handler whose change the server does not take at first.
	beside := func(foo *dsl.Resource, j *journal) {
		polls(foo, j)
		foo.OnReconcile("status", sizes)
	}
	scenarios(t, map[string]scenario{
		"the change of another handler is not taken": {beside, func(s *stage) {
			s.Launch()
			s.FailNext("patch", foos+"/status", internal)
			s.Create(web)
			s.Advance(time.Minute)
			s.Called("polls create")
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"the change of a handler before it is not taken at the time": {func(foo *dsl.Resource, j *journal) {
			n := int64(0)
			foo.OnReconcile("counts", func(_ ctx, r *dsl.Request) error {
				n++
				r.Patch.SetStatus("count", n)
				r.RunAgain(time.Hour)
				return nil
			})
			polls(foo, j)
		}, func(s *stage) {
			s.begin()
			s.FailNext("patch", foos+"/status", internal)
			s.Advance(time.Hour + time.Minute)
			s.Called("polls again")
			s.at("status.count", int64(3)) // the second one was not taken
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"what it has handled is not stored at first": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("polls", j.Note("polls", again(time.Hour, nil), succeeds))
		}, func(s *stage) {
			s.Launch()
			s.FailNext("patch", foos, internal)
			s.Create(web)
			s.Advance(time.Minute)
			s.Called("polls create")
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"what it has handled is stored, and the answer is lost": {func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("polls", j.Note("polls", again(time.Hour, nil), succeeds))
		}, func(s *stage) {
			s.Launch()
			s.LoseNext("patch", foos)
			s.Create(web)
			s.Advance(time.Minute)
			s.Called("polls create")
			s.Advance(time.Hour)
			s.Called("polls again")
		}},
		"the finalizer cannot be set at the time": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", again(time.Hour, nil), succeeds), dsl.Field("spec.size"))
			foo.OnDelete("left", succeeds, dsl.Label("tier", "gold"))
		}, func(s *stage) {
			s.begin()
			s.Advance(59 * time.Minute)
			end := s.FailWhile("patch", foos, internal)
			s.label("gold")
			s.Advance(2 * time.Minute)
			end()
			s.Advance(10 * time.Minute)
			s.Called("polls again")
		}},
		"the finalizer cannot be set at the time, and another one has asked for the same": {func(foo *dsl.Resource, j *journal) {
			for _, id := range []string{"first", "second"} {
				foo.OnReconcile(id, j.Note(id, again(time.Hour, nil), succeeds), dsl.Field("spec.size"))
			}
			foo.OnDelete("left", succeeds, dsl.Label("tier", "gold"))
		}, func(s *stage) {
			s.begin()
			s.Advance(59 * time.Minute)
			end := s.FailWhile("patch", foos, internal)
			s.label("gold")
			s.Advance(2 * time.Minute)
			end()
			s.Advance(10 * time.Minute)
			s.Called("first again", "second again")
		}},
		"its own write is not shown at the time": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", func(c ctx, r *dsl.Request) error {
				r.RunAgain(time.Second)
				return sizes(c, r)
			}, succeeds))
		}, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.HoldWatches(foos)
			s.Settle()
			s.Advance(10 * time.Second)
			s.ReleaseWatches(foos)
			s.Advance(time.Minute)
			s.Called("polls create", "polls again")
		}},
		"its filter fails at the time": {func(foo *dsl.Resource, j *journal) {
			asked := time.Now()
			foo.OnReconcile("polls", j.Note("polls", again(time.Hour, nil), succeeds), dsl.When(func(*dsl.Subject) (bool, error) {
				if since := time.Since(asked); since > 30*time.Minute && since < 90*time.Minute {
					return false, errAgain
				}
				return true, nil
			}))
		}, func(s *stage) {
			s.begin()
			s.Advance(80 * time.Minute)
			s.Called()
			s.Advance(20 * time.Minute)
			s.Called("polls again")
		}},
		"one that comes before it fails at the time": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("first", j.Note("first", again(time.Hour, nil), fails(dsl.Temporary(errAgain, time.Minute)), succeeds))
			foo.OnReconcile("polls", j.Note("polls", again(time.Hour, nil), succeeds), dsl.After("first"))
		}, func(s *stage) {
			s.begin()
			s.Advance(time.Hour)
			s.Called("first again")
			s.Advance(2 * time.Minute)
			s.Called("first again 2", "polls again")
		}},
		"a person has set what its run at the time sets": {func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("polls", j.Note("polls", again(time.Hour, nil), func(_ ctx, r *dsl.Request) error {
				defaultColor(r)
				return nil
			}), dsl.Field("spec.size"))
		}, func(s *stage) {
			s.Launch()
			s.Create(colorless)
			s.Settle()
			s.Forget()
			s.HoldWatches(foos)
			s.set("green", "spec", "color")
			s.Advance(time.Hour)
			s.ReleaseWatches(foos)
			s.Advance(time.Minute)
			s.Called("polls again", "polls again")
			s.at("spec.color", "green")
		}},
	})
}

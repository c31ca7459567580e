// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// callsGoexit returns code that ends its goroutine for as long as it is to, as t.FailNow does, and counts how often. Daemons of two
// objects call it at the same time.
func callsGoexit(while *atomic.Bool, times *atomic.Int64) func() {
	return func() {
		if while.Load() {
			times.Add(1)
			runtime.Goexit()
		}
	}
}

// TestCodeThatCallsGoexitHoldsNothingUp is law 9 for runtime.Goexit, wherever an operator's code calls it: the resource's
// only worker goes on with other objects, and with this one as soon as the code returns.
func TestCodeThatCallsGoexitHoldsNothingUp(t *testing.T) {
	done := func(j *kit.Journal, do func()) dsl.Func {
		return func(context.Context, *dsl.Request) error {
			do()
			j.Add("done")
			return nil
		}
	}
	places := map[string]func(op *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()){
		"a handler": func(_ *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()) {
			foo.OnReconcile("one", done(j, exit))
		},
		"a sub-handler": func(_ *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()) {
			foo.OnReconcile("one", func(_ context.Context, r *dsl.Request) error {
				r.Handle("part", done(j, exit))
				return nil
			})
		},
		"a filter": func(_ *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()) {
			foo.OnReconcile("one", done(j, func() {}), dsl.When(func(*dsl.Subject) (bool, error) { exit(); return true, nil }))
		},
		"a transformation": func(_ *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()) {
			foo.OnReconcile("one", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Transform(func(o *unstructured.Unstructured) error {
					exit()
					j.Add("done")
					return nil
				})
				return nil
			})
		},
		"a lifecycle": func(_ *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()) {
			foo.Lifecycle = func(due []dsl.Due) []dsl.Due { exit(); return due }
			foo.OnReconcile("one", done(j, func() {}))
		},
		"an index": func(op *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()) {
			op.Index("sizes", scene.Foos, func(*unstructured.Unstructured) ([]dsl.Entry, error) {
				exit()
				return []dsl.Entry{{Key: "all", Value: 1}}, nil
			})
			foo.OnReconcile("one", func(_ context.Context, r *dsl.Request) error {
				sizes, err := dsl.Index[string, int](r, "sizes")
				if err != nil {
					return err
				}
				if found, err := sizes.Get("all"); err != nil || len(found) == 0 {
					return dsl.Temporary(scene.ErrAgain, time.Second)
				}
				j.Add("done")
				return nil
			})
		},
		"a daemon": func(_ *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()) {
			foo.Daemon("one", func(context.Context, *dsl.DaemonRequest) error {
				exit()
				j.Add("done")
				return nil
			})
		},
		"a delay": func(_ *dsl.Operator, foo *dsl.Resource, j *kit.Journal, exit func()) {
			foo.Every(time.Minute, "one", done(j, func() {}), dsl.InitialDelayFrom(func(*dsl.Subject) time.Duration { exit(); return 0 }))
		},
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			var exiting atomic.Bool
			var times atomic.Int64
			exiting.Store(true)
			scene.Play(t, scene.Scenario{
				Operator: func(*dsl.Resource, *kit.Journal) {},
				Play: func(s *scene.Stage) {
					s.Operator = dsl.New("op")
					s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
						foo.Workers = 1
						place(s.Operator, foo, &s.Journal, callsGoexit(&exiting, &times))
					})
					s.Launch()
					s.Create(scene.Web)
					s.Create(strings.Replace(scene.Web, "name: web", "name: other", 1))
					s.Settle()
					if n := times.Load(); n < 2 {
						t.Errorf("the code was called for %d objects, want 2", n)
					}
					s.Take()
					exiting.Store(false)
					s.Update(scene.Foos, "default", "web", scene.SetField("gold", "metadata", "labels", "tier"))
					s.Advance(5 * time.Minute)
					if s.Len() == 0 {
						t.Error("nothing runs any more")
					}
				},
			})
		})
	}
}

// TestAHandlerThatCallsGoexitHasFailed holds that an attempt which calls runtime.Goexit is one that has failed.
func TestAHandlerThatCallsGoexitHasFailed(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"the Event says so, and what it wanted is not sent": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("one", j.Note("one", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("phase", "Half")
					runtime.Goexit()
					return nil
				}, scene.Succeeds), dsl.Retries(0))
			},
			Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("one create")
				s.WantField("status.phase", nil)
				events := s.Events()
				if len(events) == 0 || !strings.Contains(events[0].Note, "handler called runtime.Goexit") {
					s.T.Errorf("events %+v", events)
				}
			},
		},
	})
}

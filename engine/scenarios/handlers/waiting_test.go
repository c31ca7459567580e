// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// waitsFor waits until the child has replicas in its status.
func waitsFor(most time.Duration) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		o, err := r.Children.Get(scene.Deployments, "web")
		if err != nil {
			return err
		}
		if o != nil {
			if n, _, _ := unstructured.NestedInt64(o.Object, "status", "replicas"); n > 0 {
				return nil
			}
		}
		r.Patch.SetStatus("waiting", true)
		return dsl.Waiting("the rollout", most)
	}
}

func TestWaitingIsNoAttempt(t *testing.T) {
	keeping := func(causes ...dsl.Cause) func(foo *dsl.Resource, j *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.On(causes, "wait", j.Note("wait", waitsFor(time.Hour)))
			foo.On(causes, "next", j.Note("next"), dsl.After("wait"))
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it is no attempt, holds up what comes after it, and ends with a child's news": {
			Operator: keeping(dsl.Reconcile), Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("wait create")
				s.Wrote("patch deployments default/web", "patch foos/status default/web")
				s.Advance(59 * time.Minute)
				s.Called()
				s.RollOut(1)
				s.Called("wait create", "next create")
			},
		},
		"it ends after its time": {Operator: keeping(dsl.Reconcile), Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Hour)
			s.Called("wait create")
			s.Advance(time.Hour)
			s.Called("wait create")
			s.Wrote()
		}},
		"nothing of it is stored, also where progress is": {Operator: keeping(dsl.Create), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Called("wait create")
			s.Wrote("patch deployments default/web", "patch foos/status default/web")
			if text, found := s.Web().GetAnnotations()[scene.StateAnnotation]; found {
				s.T.Errorf("stored is %s", text)
			}
			s.Advance(time.Minute)
			s.Called()
			s.RollOut(1)
			s.Called("wait create", "next create")
			s.Wrote("patch foos default/web")
		}},
		"a process that begins again looks again": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("vain", j.Note("vain", scene.RetriesAfter(2*time.Hour)))
				foo.OnCreate("wait", j.Note("wait", scene.Fails(dsl.Waiting("rain", time.Hour))))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("vain create", "wait create")
				s.Wrote("patch foos default/web")
				if text := s.Web().GetAnnotations()[scene.StateAnnotation]; !strings.Contains(text, `"wait":{}`) {
					s.T.Errorf("stored is %s", text)
				}
				s.Process.Restart()
				s.Called("wait create")
			},
		},
		"retries are counted without it": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("wait", j.Note("wait",
					scene.Fails(dsl.Waiting("rain", time.Second)), scene.Fails(dsl.Waiting("rain", time.Second)), scene.RetriesAfter(time.Second),
					scene.Fails(fmt.Errorf("wrapped: %w", dsl.Waiting("rain", time.Second))), scene.Fails(scene.ErrAgain), scene.Succeeds), dsl.Retries(1))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("wait create", "wait create", "wait create", "wait create 2", "wait create 2")
				if events := s.Events(); len(events) != 1 {
					s.T.Errorf("events %+v", events)
				}
			},
		},
		"a permanent error is one though it wraps waiting": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("wait", j.Note("wait", scene.Fails(dsl.Permanent(dsl.Waiting("rain", time.Second)))))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"a wrong patch is one though the handler waits": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnReconcile("wait", j.Note("wait", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Set("status.x", 1)
					return dsl.Waiting("rain", time.Second)
				}))
			}, Play: func(s *scene.Stage) {
				s.Begin()
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}

// TestADeletionGoesOnWhenItsLastChildIsGone holds that a deletion goes on as soon as the last child is gone.
func TestADeletionGoesOnWhenItsLastChildIsGone(t *testing.T) {
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Owns(scene.Deployments)
		foo.OnReconcile("child", scene.KeepsDeployment)
		foo.OnDelete("clear", j.Note("clear", func(ctx context.Context, r *dsl.Request) error {
			left, err := r.Children.List(scene.Deployments)
			if err != nil || len(left) == 0 {
				return err
			}
			return errors.Join(r.Children.Delete(ctx, scene.Deployments, "web"), dsl.Waiting("children to go", time.Hour))
		}))
	}
	gone := func(s *scene.Stage) {
		s.T.Helper()
		if s.Web() != nil {
			s.T.Error("the owner is still there")
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"a child that goes at once": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.Remove()
			s.Called("clear delete", "clear delete")
			gone(s)
		}},
		"a child that a finalizer holds": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Forget()
			s.Remove()
			s.Called("clear delete", "clear delete") // the child's deletion timestamp is news
			s.Wrote("delete deployments default/web")
			s.Advance(30 * time.Minute)
			s.Called()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Called("clear delete")
			gone(s)
			s.Wrote("patch foos default/web")
		}},
		"when nothing comes it looks again after its time": {Operator: operator, Play: func(s *scene.Stage) {
			s.Begin()
			s.Update(scene.Deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Remove()
			s.Forget()
			s.Advance(time.Hour)
			s.Called("clear delete")
			s.Wrote()
		}},
	})
}

// TestMetricsCountWaitingApartFromFailures holds that metrics distinguish waiting from failing.
func TestMetricsCountWaitingApartFromFailures(t *testing.T) {
	metrics := ops.NewMetrics()
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.OnReconcile("wait", scene.Fails(dsl.Waiting("rain", time.Minute)))
		},
		Play: func(s *scene.Stage) {
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Create(scene.Web)
			s.Advance(150 * time.Second)
			if got := scene.CountedRuns(s.T, metrics, "wait", "waiting"); got != 3 {
				s.T.Errorf("%v runs are counted as waiting, want 3", got)
			}
		},
	})
}

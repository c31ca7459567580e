// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

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
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// waitsFor waits until the child has replicas in its status.
func waitsFor(most time.Duration) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		o, err := r.Children.Get(deployments, "web")
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

func TestWaiting(t *testing.T) {
	keeping := func(causes ...dsl.Cause) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.OnReconcile("child", keepsChild)
			foo.On(causes, "wait", j.Note("wait", waitsFor(time.Hour)))
			foo.On(causes, "next", j.Note("next"), dsl.After("wait"))
		}
	}
	scenarios(t, map[string]scenario{
		"it is no attempt, holds up what comes after it, and ends with a child's news": {
			keeping(dsl.Reconcile), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("wait create")
				s.Wrote("patch deployments default/web", "patch foos/status default/web")
				s.Advance(59 * time.Minute)
				s.Called()
				s.rollout(1)
				s.Called("wait create", "next create")
			},
		},
		"it ends after its time": {keeping(dsl.Reconcile), func(s *stage) {
			s.begin()
			s.Advance(time.Hour)
			s.Called("wait create")
			s.Advance(time.Hour)
			s.Called("wait create")
			s.Wrote()
		}},
		"nothing of it is stored, also where progress is": {keeping(dsl.Create), func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Called("wait create")
			s.Wrote("patch deployments default/web", "patch foos/status default/web")
			if text, found := s.web().GetAnnotations()[state]; found {
				s.t.Errorf("stored is %s", text)
			}
			s.Advance(time.Minute)
			s.Called()
			s.rollout(1)
			s.Called("wait create", "next create")
			s.Wrote("patch foos default/web")
		}},
		"a process that begins anew looks again": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("vain", j.Note("vain", temporary(2*time.Hour)))
				foo.OnCreate("wait", j.Note("wait", fails(dsl.Waiting("rain", time.Hour))))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("vain create", "wait create")
				s.Wrote("patch foos default/web")
				if text := s.web().GetAnnotations()[state]; !strings.Contains(text, `"wait":{}`) {
					s.t.Errorf("stored is %s", text)
				}
				s.Process.Restart()
				s.Called("wait create")
			},
		},
		"retries are counted without it": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("wait", j.Note("wait",
					fails(dsl.Waiting("rain", time.Second)), fails(dsl.Waiting("rain", time.Second)), temporary(time.Second),
					fails(fmt.Errorf("wrapped: %w", dsl.Waiting("rain", time.Second))), fails(errAgain), succeeds), dsl.Retries(1))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Minute)
				s.Called("wait create", "wait create", "wait create", "wait create 2", "wait create 2")
				if events := s.Events(); len(events) != 1 {
					s.t.Errorf("events %+v", events)
				}
			},
		},
		"a permanent error is one though it wraps waiting": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("wait", j.Note("wait", fails(dsl.Permanent(dsl.Waiting("rain", time.Second)))))
			}, func(s *stage) {
				s.begin()
				s.Advance(time.Hour)
				s.Called()
			},
		},
		"a wrong patch is one though the handler waits": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnReconcile("wait", j.Note("wait", func(_ ctx, r *dsl.Request) error {
					r.Patch.Set("status.x", 1)
					return dsl.Waiting("rain", time.Second)
				}))
			}, func(s *stage) {
				s.begin()
				s.Advance(time.Hour)
				s.Called()
			},
		},
	})
}

// TestWaitingForChildrenToGo holds that a deletion goes on as soon as the last child is gone.
func TestWaitingForChildrenToGo(t *testing.T) {
	operator := func(foo *dsl.Resource, j *journal) {
		foo.Owns(deployments)
		foo.OnReconcile("child", keepsChild)
		foo.OnDelete("clear", j.Note("clear", func(ctx ctx, r *dsl.Request) error {
			left, err := r.Children.List(deployments)
			if err != nil || len(left) == 0 {
				return err
			}
			return errors.Join(r.Children.Delete(ctx, deployments, "web"), dsl.Waiting("children to go", time.Hour))
		}))
	}
	gone := func(s *stage) {
		s.t.Helper()
		if s.web() != nil {
			s.t.Error("the owner is still there")
		}
	}
	scenarios(t, map[string]scenario{
		"a child that goes at once": {operator, func(s *stage) {
			s.begin()
			s.remove()
			s.Called("clear delete", "clear delete")
			gone(s)
		}},
		"a child that a finalizer holds": {operator, func(s *stage) {
			s.begin()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.Forget()
			s.remove()
			s.Called("clear delete", "clear delete") // the child's deletion timestamp is news
			s.Wrote("delete deployments default/web")
			s.Advance(30 * time.Minute)
			s.Called()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })
			s.Called("clear delete")
			gone(s)
			s.Wrote("patch foos default/web")
		}},
		"when nothing comes it looks again after its time": {operator, func(s *stage) {
			s.begin()
			s.Update(deployments, "default", "web", func(o *unstructured.Unstructured) { o.SetFinalizers([]string{"example.com/x"}) })
			s.remove()
			s.Forget()
			s.Advance(time.Hour)
			s.Called("clear delete")
			s.Wrote()
		}},
	})
}

// TestWaitingIsCounted holds that metrics tell waiting from failing.
func TestWaitingIsCounted(t *testing.T) {
	metrics := ops.NewMetrics()
	perform(t, scenario{
		func(foo *dsl.Resource, _ *journal) { foo.OnReconcile("wait", fails(dsl.Waiting("rain", time.Minute))) },
		func(s *stage) {
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Create(web)
			s.Advance(150 * time.Second)
			if got := runsOf(s.t, metrics, "wait", "waiting"); got != 3 {
				s.t.Errorf("%v runs are counted as waiting, want 3", got)
			}
		},
	})
}

// runsOf returns the runs of a handler that the metrics have counted with that outcome.
func runsOf(t *testing.T, metrics *ops.Metrics, handler, outcome string) (n float64) {
	t.Helper()
	families, err := metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "handwerk_handler_runs_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["handler"] == handler && labels["outcome"] == outcome {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// TestSteps holds that a handler of steps goes on where it was, and begins anew for something new.
func TestSteps(t *testing.T) {
	steps := func(second ...dsl.Func) func(foo *dsl.Resource, j *journal) {
		return func(foo *dsl.Resource, j *journal) {
			foo.OnCreate("steps", dsl.Steps(j.Note("one"), j.Note("two", second...), j.Note("three")))
		}
	}
	scenarios(t, map[string]scenario{
		"the next attempt goes on": {
			steps(temporary(time.Minute), succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("one create", "two create")
				s.Advance(time.Minute)
				s.Called("two create 2", "three create 2")
			},
		},
		"also after a crash, where progress is stored": {
			steps(temporary(time.Minute), succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("one create", "two create")
				s.Process.Kill()
				s.Process.Restart()
				s.Called()
				s.Advance(time.Minute)
				s.Called("two create 2", "three create 2")
				if text := s.web().GetAnnotations()[state]; strings.Contains(text, `"step"`) {
					s.t.Errorf("stored is %s", text)
				}
			},
		},
		"after one before it was stored they are repeated": {
			steps(temporary(5*time.Second), succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Called("one create", "two create")
				s.Process.Kill()
				s.Process.Restart()
				s.Called("one create", "two create", "three create")
			},
		},
		"a change begins anew": {
			steps(temporary(time.Minute), succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Forget()
				s.size(2)
				s.Called("one create", "two create", "three create")
			},
		},
		"one that waits goes on too": {
			steps(fails(dsl.Waiting("rain", time.Minute)), succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Minute)
				s.Called("one create", "two create", "two create", "three create")
			},
		},
		"of an attempt that overran, the step alone that did is repeated": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("steps", dsl.Steps(j.Note("one"), j.Note("two", takes(time.Minute), succeeds)), dsl.Timeout(time.Second))
			}, func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(10 * time.Second)
				s.Called("one create", "two create", "two create 2")
			},
		},
		"and so is the one that panicked": {
			steps(func(ctx, *dsl.Request) error { panic("no") }, succeeds), func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(10 * time.Second)
				s.Called("one create", "two create", "two create 2", "three create 2")
			},
		},
	})
}

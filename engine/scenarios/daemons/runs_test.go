// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemons_test

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// daemonScenario is an operator with a daemon, and what happens to it.
type daemonScenario struct {
	operator func(*dsl.Resource, *vigil)
	play     func(s *scene.Stage, v *vigil)
}

// playDaemons plays each scenario, and ends the operator.
func playDaemons(t *testing.T, tests map[string]daemonScenario) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s, v := scene.NewStage(t, c), newVigil(t)
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { tt.operator(foo, v) })
				tt.play(s, v)
				_ = s.Process.Stop()
				s.Advance(time.Hour)
			})
		})
	}
}

// TestTheRunsOfADaemonAreRetriedAndTheirPatchesSent holds what becomes of a run that ends, and of what it wants.
func TestTheRunsOfADaemonAreRetriedAndTheirPatchesSent(t *testing.T) {
	playDaemons(t, map[string]daemonScenario{
		"what it wants when a run ends is sent, an error or not": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", func(_ context.Context, r *dsl.DaemonRequest) error {
				r.Patch.SetStatus("runs", r.Attempt)
				r.Patch.SetCondition("Watched", metav1.ConditionFalse, "Failed", "it cannot be watched")
				return dsl.Permanent(scene.ErrAgain)
			}, dsl.NoFinalizer())
		}, func(s *scene.Stage, _ *vigil) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote("patch foos/status default/web")
			conditions, _, _ := unstructured.NestedSlice(s.Web().Object, "status", "conditions")
			if len(conditions) != 1 {
				s.T.Errorf("its conditions are %v", conditions)
			}
			if got := eventTexts(s); got != "DaemonFailed" {
				s.T.Errorf("Events: %s", got)
			}
		}},
		"a refused patch fails the run, and is reported": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
				v.note("runs")
				r.Patch.Set("spec..size", 1)
				return r.Flush(ctx)
			}, dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Advance(time.Hour)
			v.want("runs")
		}},
		"panics are failures: the next run comes, and its patch is not sent": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
				v.note("run %d", r.Attempt)
				r.Patch.SetStatus("runs", r.Attempt)
				if r.Attempt < 4 {
					panic("broken")
				}
				<-ctx.Done()
				return nil
			}, dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Advance(time.Minute)
			v.want("run 1", "run 2", "run 3", "run 4")
			s.Wrote()
			if got := eventTexts(s); got != "DaemonFailing" {
				s.T.Errorf("Events: %s", got)
			}
		}},
		"retries are bounded": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", func(_ context.Context, r *dsl.DaemonRequest) error {
				v.note("run %d", r.Attempt)
				return scene.ErrAgain
			}, dsl.Retries(2), dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Advance(time.Hour)
			v.want("run 1", "run 2", "run 3")
		}},
		"a run that lasted begins the count again": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", func(_ context.Context, r *dsl.DaemonRequest) error {
				v.note("run %d", r.Attempt)
				<-time.After(20 * time.Minute)
				return scene.ErrAgain
			}, dsl.Retries(1), dsl.NoFinalizer(), dsl.WithBackoff(time.Second, time.Minute), dsl.StopWithin(time.Hour))
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Advance(65 * time.Minute)
			v.want("run 1", "run 2", "run 2", "run 2")
		}},
		"its delay can be fixed, and be worked out": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("fixed", v.answers(func(context.Context, *dsl.DaemonRequest) error { v.note("fixed"); return nil }),
				dsl.InitialDelay(time.Minute), dsl.NoFinalizer(), dsl.When(red))
			foo.Daemon("computed", func(ctx context.Context, _ *dsl.DaemonRequest) error {
				v.note("computed")
				<-ctx.Done()
				return nil
			}, dsl.InitialDelayFrom(func(s *dsl.Subject) time.Duration {
				return time.Duration(scene.SizeOf(s.Object)) * 10 * time.Second
			}), dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Advance(9 * time.Second)
			v.want()
			s.Advance(time.Second)
			v.want("computed")
			s.Set("blue", "spec", "color")
			s.Advance(time.Hour)
			v.want()
			s.Set("red", "spec", "color")
			s.Advance(time.Minute)
			v.want("fixed")
		}},
		"its client reads and writes, and its Events are those of the object": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
				_, err := r.Client.Apply(ctx, map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "own", "namespace": "default"},
				})
				r.Events.Event(dsl.Normal, "Watching", "it is watched")
				return err
			}, dsl.NoFinalizer())
		}, func(s *scene.Stage, _ *vigil) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote("patch configmaps default/own")
			if got := eventTexts(s); got != "Watching" {
				s.T.Errorf("Events: %s", got)
			}
		}},
		"what its types say is sent": {func(foo *dsl.Resource, v *vigil) {
			type typed struct {
				metav1.ObjectMeta `json:"metadata"`
				Spec              struct {
					Size int `json:"size"`
				} `json:"spec"`
				Status struct {
					Twice int `json:"twice,omitempty"`
				} `json:"status"`
			}
			foo.Daemon("watch", dsl.TypedDaemon(func(ctx context.Context, r *dsl.TypedDaemonRequest[typed]) error {
				for {
					if err := r.Change(ctx, func(o *typed) { o.Status.Twice = 2 * o.Spec.Size }); err != nil {
						return err
					}
					if o, err := r.Current(); err != nil || o.Status.Twice != 2*o.Spec.Size {
						v.t.Errorf("it finds %v, %v", o, err)
					}
					select {
					case <-r.Changes():
					case <-ctx.Done():
						return nil
					}
				}
			}), dsl.NoFinalizer())
		}, func(s *scene.Stage, _ *vigil) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote("patch foos/status default/web")
			s.Resize(4)
			s.Wrote("patch foos/status default/web")
			if got, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "twice"); got != 8 {
				s.T.Errorf("status.twice is %d", got)
			}
		}},
	})
}

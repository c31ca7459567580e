// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHandlerWritesNothingAfterItsTimeout is law 10: a handler's time ends, and with it what it may write.
func TestAHandlerWritesNothingAfterItsTimeout(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a handler's context ends at its timeout": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("slow", j.Note("slow", func(ctx context.Context, _ *dsl.Request) error {
					begun := time.Now()
					<-ctx.Done()
					j.Add(time.Since(begun).String())
					return ctx.Err()
				}, scene.Succeeds), dsl.Timeout(30*time.Second))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("slow create", "30s", "slow create 2")
			},
		},
		"what a handler writes after its timeout does not leave the process, whatever context it uses": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("slow", j.Note("slow", func(ctx context.Context, r *dsl.Request) error {
					<-ctx.Done()
					free := context.WithoutCancel(ctx)
					_, err1 := r.Children.Apply(free, scene.DeploymentNamed("web", int64(1)))
					err2 := scene.WritesElsewhere(free, r)
					if err1 == nil || err2 == nil {
						j.Add("a write was not refused")
					}
					return err1
				}, scene.Succeeds), dsl.Timeout(30*time.Second))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("slow create", "slow create 2")
				s.Wrote("patch foos default/web")
			},
		},
		"what a handler wanted of its object when its time was over is void, even if it says all is well": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("slow", j.Note("slow", func(ctx context.Context, r *dsl.Request) error {
					<-ctx.Done()
					r.Patch.Label("late", "yes")
					r.Patch.SetStatus("late", true)
					return nil
				}, scene.Succeeds), dsl.Timeout(30*time.Second))
				foo.OnCreate("quick", func(_ context.Context, r *dsl.Request) error {
					r.Patch.Label("quick", "yes")
					return nil
				})
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("slow create", "slow create") // it sees the label now, which is another view
				if labels := s.Web().GetLabels(); labels["late"] != "" || labels["quick"] != "yes" {
					s.T.Errorf("labels %v", labels)
				}
			},
		},
		"what a handler left behind writes nothing after its return": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("leaky", j.Note("leaky", func(ctx context.Context, r *dsl.Request) error {
					go func() {
						<-time.After(time.Second)
						if _, err := r.Children.Apply(context.WithoutCancel(ctx), scene.DeploymentNamed("web", int64(1))); err == nil {
							j.Add("a write was not refused")
						}
						r.Events.Event(dsl.Normal, "Late", "No one should see this.")
					}()
					return nil
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("leaky create")
				s.Wrote("patch foos default/web")
				if events := s.Events(); len(events) > 0 {
					s.T.Errorf("events %+v", events)
				}
			},
		},
	})
}

// TestAStopGivesHandlersTheGracePeriod is law 10 at the end of the process.
func TestAStopGivesHandlersTheGracePeriod(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"at the end of the process handlers get the grace period, and their result is kept": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("slow", j.Note("slow", func(ctx context.Context, _ *dsl.Request) error {
					select {
					case <-time.After(10 * time.Second):
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("slow create")
				scene.Stop(s)
				s.Wrote("patch foos default/web")
				s.Process.Restart()
				s.Called()
			},
		},
		"an Event that was reported at the very end is sent": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("slow", func(_ context.Context, r *dsl.Request) error {
					<-time.After(10 * time.Second)
					r.Events.Event(dsl.Normal, "Done", "It took its time.")
					return nil
				})
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				scene.Stop(s)
				if events := s.Events(); len(events) != 1 || events[0].Reason != "Done" {
					s.T.Errorf("events %+v", events)
				}
			},
		},
		"a handler that does not heed its context is named": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("deaf", func(context.Context, *dsl.Request) error {
					<-time.After(time.Hour)
					return nil
				})
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Settle()
				begun := time.Now()
				err := s.Process.Stop()
				if err == nil || !strings.Contains(err.Error(), "deaf of default/web") {
					s.T.Errorf("the error is %v", err)
				}
				if took := time.Since(begun); took > 30*time.Second {
					s.T.Errorf("stopping took %v", took)
				}
				s.Advance(time.Hour) // a bubble's time does not wait
			},
		},
		"a handler that goes on beyond the grace period is ended, and run again by the next process": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnCreate("slow", j.Note("slow", func(ctx context.Context, _ *dsl.Request) error {
					<-ctx.Done()
					return nil
				}, scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Operator.Settings.GracePeriod = 5 * time.Second
				s.Launch()
				s.Create(scene.Web)
				s.Called("slow create")
				begun := time.Now()
				scene.Stop(s)
				if took := time.Since(begun); took < 5*time.Second || took > 6*time.Second {
					s.T.Errorf("stopping took %v", took)
				}
				s.Wrote()
				s.Process.Restart()
				s.Called("slow create")
			},
		},
	})
}

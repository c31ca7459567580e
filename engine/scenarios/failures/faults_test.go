// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package failures_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAPanicFailsItsHandlerAlone is law 9: a handler that panics costs itself alone.
func TestAPanicFailsItsHandlerAlone(t *testing.T) {
	panics := func(context.Context, *dsl.Request) error { panic("at the disco") }
	scene.PlayAll(t, map[string]scene.Scenario{
		"a panic is a failure like any other, of that handler": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
				foo.OnCreate("panics", j.Note("panics", panics, panics, scene.Succeeds))
				foo.OnCreate("next", j.Note("next"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("panics create", "next create")
				s.Advance(time.Minute)
				s.Called("panics create 2", "panics create 3")
			},
		},
		"a panic with nil, and one of a runtime error": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
				foo.OnCreate("panics", j.Note("panics", func(context.Context, *dsl.Request) error {
					var none map[string]int
					none["x"]++
					return nil
				}, func(context.Context, *dsl.Request) error { panic(nil) }, scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Minute)
				s.Called("panics create", "panics create 2", "panics create 3")
			},
		},
		"a predicate that panics hides the object from its handler alone": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
				foo.OnCreate("panics", j.Note("panics"), dsl.When(func(*dsl.Subject) (bool, error) { panic("at the disco") }))
				foo.OnCreate("next", j.Note("next"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("next create")
			},
		},
	})
}

// TestAHandlerWritesNothingAfterItsTimeout is law 10: a handler's time ends, and with it what it may write.
func TestAHandlerWritesNothingAfterItsTimeout(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a handler's context ends at its timeout": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
				foo.Owns(scene.Deployments)
				foo.OnCreate("leaky", j.Note("leaky", func(ctx context.Context, r *dsl.Request) error {
					go func() {
						<-time.After(time.Second)
						if _, err := r.Children.Apply(context.WithoutCancel(ctx), scene.DeploymentNamed("web", int64(1))); err == nil {
							j.Add("a write was not refused")
						}
						r.Events.Event(dsl.Normal, "Late", "Nobody should see this.")
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
		"at the end of the process handlers get the grace period, and their result is kept": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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
				s.Advance(time.Hour) // a bubble waits for nobody
			},
		},
		"a handler that goes on beyond the grace period is ended, and run again by the next process": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
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

// TestTheBreakerStopsAnObjectThatLoops is law 9: an object that loops is stopped, probed, and never kept from deletion.
func TestTheBreakerStopsAnObjectThatLoops(t *testing.T) {
	side := func(which string) dsl.Func {
		return func(_ context.Context, r *dsl.Request) error {
			if r.Object.GetAnnotations()["mended"] == "" {
				r.Patch.Label("side", which)
			}
			return nil
		}
	}
	loops := func(foo *dsl.Resource, j *enginetest.Journal) {
		foo.OnReconcile("left", j.Note("left", side("left")))
		foo.OnReconcile("right", j.Note("right", side("right")))
		foo.OnDelete("gone", j.Note("gone"))
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object whose handlers undo each other comes to rest for a minute, and says so": {Operator: loops, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Advance(time.Second)
			if first := len(s.Take()); first < 40 || first > 80 {
				s.T.Errorf("%d calls of two handlers before they were stopped", first)
			}
			s.Advance(50 * time.Second)
			s.Called()
			events := s.Events()
			if len(events) != 1 || events[0].Reason != "Looping" || events[0].Type != "Warning" || !strings.Contains(events[0].Note, "left, right") {
				s.T.Errorf("events %+v", events)
			}
			s.Advance(time.Hour)
			if n := len(s.Take()); n < 60*2 || n > 60*6 {
				s.T.Errorf("%d calls of two handlers in an hour's probes, want about two each a minute", n)
			}
			if n := len(s.Process.Writes()); n > 3 {
				s.T.Errorf("%d writes of handlers that undo each other before anything is written", n)
			}
		}},
		"one that gets on is let go on": {Operator: func(foo *dsl.Resource, j *enginetest.Journal) {
			count := func(odd int) dsl.Func {
				return func(_ context.Context, r *dsl.Request) error {
					n, _ := strconv.Atoi(r.Object.GetLabels()["n"])
					if n%2 == odd && n < 100 {
						r.Patch.Label("n", strconv.Itoa(n+1))
					}
					return nil
				}
			}
			foo.OnReconcile("even", count(0))
			foo.OnReconcile("odd", count(1))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			if n := len(s.Process.Writes()); n != 50 {
				s.T.Errorf("%d writes, want 50: both count in one pass", n)
			}
			if events := s.Events(); len(events) > 0 {
				s.T.Errorf("events %+v", events)
			}
		}},
		"it can be deleted while it rests": {Operator: loops, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Forget()
			s.Remove()
			s.Called("gone delete")
			s.WantGone()
		}},
		"it works again when the reason has gone": {Operator: loops, Play: func(s *scene.Stage) {
			s.Begin()
			s.Advance(time.Second)
			s.Forget()
			s.Set("yes", "metadata", "annotations", "mended")
			s.Called()
			s.Advance(2 * time.Minute)
			s.Called("left update", "right update")
			s.Resize(5)
			s.Called("left update", "right update")
		}},
		"another object is not affected": {Operator: loops, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Forget()
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: second}}`)
			s.Settle()
			if len(s.Take()) == 0 {
				s.T.Error("no call for the other object")
			}
		}},
		"many changes by others are no loop": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Begin()
			for i := range int64(100) {
				s.Resize(i + 10)
				s.Called("sync update")
			}
		}},
	})
}

// TestARefusedWriteIsRetriedMoreAndMoreSlowly holds what happens when the server does not take what handlers want.
func TestARefusedWriteIsRetriedMoreAndMoreSlowly(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"the object is tried again, more and more slowly, and an Event says why": {
			Operator: func(foo *dsl.Resource, j *enginetest.Journal) { foo.OnCreate("made", j.Note("made")) },
			Play: func(s *scene.Stage) {
				s.Forbid("patch", scene.Foos)
				s.Launch()
				s.Create(scene.Web)
				s.Advance(10 * time.Minute)
				if n := len(s.Process.Writes()); n < 5 || n > 20 {
					s.T.Errorf("%d tries in ten minutes", n)
				}
				events := s.Events()
				if len(events) != 1 || events[0].Reason != "WriteRefused" {
					s.T.Errorf("events %+v", events)
				}
				scene.WantUnwell(s, "patch")
				s.Allow("patch", scene.Foos)
				s.Advance(10 * time.Minute)
				if s.Web().GetAnnotations()[scene.StateAnnotation] == "" {
					s.T.Error("the object is not marked as handled")
				}
				scene.WantWell(s)
			},
		},
	})
}

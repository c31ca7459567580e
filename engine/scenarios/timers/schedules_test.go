// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"context"
	"fmt"
	"slices"
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

// names are those of the request's objects.
func names(r *dsl.Request) string {
	var out []string
	for _, o := range r.Objects {
		out = append(out, o.GetNamespace()+"/"+o.GetName())
	}
	return strings.Join(out, " ")
}

func TestAScheduleRunsForTheResourceAsAWhole(t *testing.T) {
	sees := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Schedule(scene.Hourly(), "report", func(_ context.Context, r *dsl.Request) error {
			j.Add(fmt.Sprint(r.Cause, " ", r.Object.GetKind(), r.Object.GetName(), " ", names(r)))
			if len(r.Objects) > 0 {
				r.Objects[0].Object["spec"] = "spoilt"
			}
			return nil
		})
	}
	const elsewhere = `{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, namespace: other}}`
	scene.PlayAll(t, map[string]scene.Scenario{
		"it runs once for all objects, and writes nothing": {Operator: sees, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Create(elsewhere)
			s.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: app}}`)
			s.Advance(59 * time.Minute)
			s.Called()
			s.Advance(time.Minute)
			s.Called("timer Foo default/app default/web other/a")
			s.Advance(2 * time.Hour)
			s.Called("timer Foo default/app default/web other/a", "timer Foo default/app default/web other/a")
			s.Wrote()
		}},
		"it runs where there are no objects": {Operator: sees, Play: func(s *scene.Stage) {
			s.Launch()
			s.Advance(time.Hour)
			s.Called("timer Foo ")
		}},
		"one that fails is named by /readyz until it succeeds": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Schedule(scene.Hourly(), "report", j.Note("report", scene.FailsFirst(3, scene.ErrAgain)))
			}, Play: func(s *scene.Stage) {
				const name = "schedule/foos.v1.example.com/report"
				s.Launch()
				s.Advance(time.Hour)
				if got, want := scene.CheckNamed(s.Process.Engine().Ready(), name), "[!]"+name+" degraded: for 0s: handler report is tried again: not yet"; got != want {
					s.T.Errorf("the check is %q, want %q", got, want)
				}
				s.Advance(10 * time.Minute)
				if got := scene.CheckNamed(s.Process.Engine().Ready(), name); got != "" {
					s.T.Errorf("the check is %q after a success", got)
				}
			},
		},
		"it asks for no finalizer, where a delete handler holds objects": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.OnDelete("farewell", func(context.Context, *dsl.Request) error { return nil })
				sees(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Advance(time.Hour)
				s.Called("timer Foo ")
				s.Wrote()
			},
		},
		"objects that are only in the cache as keys have their names": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Cache = dsl.CacheLive
				sees(foo, j)
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(time.Hour)
				s.Called("timer Foo default/web")
			},
		},
		"it is tried again by its back-off and not run twice": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Schedule(scene.Hourly(), "report", j.Note("report", scene.RetriesAfter(90*time.Minute), scene.Succeeds))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Advance(149 * time.Minute)
				s.Called("report timer")
				s.Advance(time.Minute)
				s.Called("report timer 2")
				s.Advance(30 * time.Minute)
				s.Called("report timer")
			},
		},
		"a panic is the handler's alone": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Schedule(scene.Hourly(), "report", j.Note("report", func(context.Context, *dsl.Request) error { panic("no") }, scene.Succeeds))
				foo.OnReconcile("sync", j.Note("sync"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Advance(61 * time.Minute)
				s.Create(scene.Web)
				s.Called("report timer", "report timer 2", "sync create")
			},
		},
		"it waits for the listing": {Operator: sees, Play: func(s *scene.Stage) {
			s.Create(scene.Web)
			s.Forbid("list", scene.Foos)
			s.Launch()
			s.Advance(90 * time.Minute)
			s.Called()
			s.Allow("list", scene.Foos)
			s.Advance(time.Minute)
			s.Called("timer Foo default/web")
		}},
		"an object may have a schedule's name": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.Schedule(scene.Hourly(), "web", j.Note("web"))
				foo.OnReconcile("sync", j.Note("sync"))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Called("sync create")
				s.Remove()
				s.Advance(time.Hour)
				s.Called("web timer")
			},
		},
	})
}

// TestAScheduleMayWriteOtherObjects holds what a handler for the resource as a whole can do.
func TestAScheduleMayWriteOtherObjects(t *testing.T) {
	metrics := ops.NewMetrics()
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Owns(scene.Deployments)
			foo.Schedule(scene.Hourly(), "report", func(ctx context.Context, r *dsl.Request) error {
				_, err := r.Children.List(scene.Deployments)
				_, err2 := r.Related.Get("x")
				j.Add(fmt.Sprint(dsl.IsPermanent(err), dsl.IsPermanent(err2)))
				r.Events.Event(dsl.Normal, "Said", "nothing")
				return scene.WritesElsewhere(ctx, r)
			})
		},
		Play: func(s *scene.Stage) {
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Advance(time.Hour)
			s.Called("true true")
			s.Wrote("patch configmaps default/other")
			if len(s.Events()) > 0 || scene.CountedRuns(s.T, metrics, "report", "success") != 1 {
				s.T.Errorf("events %v, runs %v", s.Events(), scene.CountedRuns(s.T, metrics, "report", "success"))
			}
		},
	})
}

// TestAPatchOfAScheduleFailsForGood holds that what a schedule wants of an object fails it for good, and that its
// next run comes.
func TestAPatchOfAScheduleFailsForGood(t *testing.T) {
	metrics := ops.NewMetrics()
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Schedule(scene.Hourly(), "report", j.Note("report", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("x", 1)
				return nil
			}))
		},
		Play: func(s *scene.Stage) {
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
			s.Create(scene.Web)
			s.Advance(150 * time.Minute)
			s.Called("report timer", "report timer")
			s.Wrote()
			if n := scene.CountedRuns(s.T, metrics, "report", "failed"); n != 2 {
				s.T.Errorf("%v runs have failed for good, want 2", n)
			}
		},
	})
}

// TestAScheduleSeesItsOwnWrites holds that a run sees what the one before it wrote.
func TestAScheduleSeesItsOwnWrites(t *testing.T) {
	scene.Play(t, scene.Scenario{
		Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Schedule(scene.Hourly(), "scale", func(ctx context.Context, r *dsl.Request) error {
				n, _, _ := unstructured.NestedInt64(r.Objects[0].Object, "spec", "size")
				j.Add(fmt.Sprint("size ", n))
				_, err := r.Client.MergePatch(ctx, scene.Foos, "default", "web", map[string]any{"spec": map[string]any{"size": n + 1}})
				return err
			})
		},
		Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			s.Settle()
			s.HoldWatches(scene.Foos)
			s.Advance(150 * time.Minute)
			s.Called("size 1")
			s.ReleaseWatches(scene.Foos)
			s.Called("size 2")
		},
	})
}

// TestAScheduleRunsInTheLeaderAlone holds that of several processes one runs it, and that the next leader
// begins again.
func TestAScheduleRunsInTheLeaderAlone(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		process := func(id string) *kit.Process {
			op := dsl.New("op")
			op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
			op.Resource(scene.Foos, func(foo *dsl.Resource) {
				foo.Schedule(scene.WithoutJitter(dsl.Timing{Cron: "*/5 * * * *"}), id, s.Note(id))
			})
			p := s.Start(op)
			s.Advance(time.Second)
			return p
		}
		first := process("first")
		process("second")
		s.Advance(10 * time.Minute)
		s.Called("first timer", "first timer")
		if err := first.Stop(); err != nil {
			t.Error(err)
		}
		s.Advance(5 * time.Minute)
		s.Called("second timer")
	})
}

// TestAScheduleEndsWithLeadership is law 10 for schedules.
func TestAScheduleEndsWithLeadership(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		op := dsl.New("op")
		op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
		var failure error
		op.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.Schedule(scene.WithoutJitter(dsl.Timing{Cron: "*/5 * * * *"}), "slow", func(ctx context.Context, r *dsl.Request) error {
				s.Add("begins")
				<-ctx.Done()
				s.Add("ends")
				failure = scene.WritesElsewhere(context.WithoutCancel(ctx), r)
				return failure
			})
		})
		p := s.Start(op)
		s.Advance(5*time.Minute + time.Second)
		s.Called("begins")
		p.Sever()
		s.Advance(time.Minute)
		p.Restore()
		s.Settle()
		if got := s.Take(); !slices.Contains(got, "ends") || failure == nil {
			t.Errorf("calls %v, the write's error is %v", got, failure)
		}
		s.Wrote()
	})
}

// TestAWrongScheduleIsRefused holds that what cannot be is refused.
func TestAWrongScheduleIsRefused(t *testing.T) {
	for name, option := range map[string]dsl.Option{
		"a second cause": scene.AlsoFor(dsl.Create),
		"a filter":       dsl.Label("a", "b"),
		"an idle object": dsl.At(dsl.Timing{Idle: time.Hour}),
		"an order":       dsl.After("first"),
	} {
		op := dsl.New("op")
		op.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.OnReconcile("first", scene.Succeeds)
			foo.Schedule(scene.Hourly(), "whole", scene.Succeeds, option)
		})
		if op.Validate() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

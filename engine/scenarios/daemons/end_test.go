// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemons_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// lasts has a daemon take its time when it stops.
func lasts(v *vigil, d time.Duration) func(context.Context, *dsl.DaemonRequest) {
	return func(context.Context, *dsl.DaemonRequest) {
		<-time.After(d)
		v.note("ends")
	}
}

// TestADeletionWaitsForDaemons holds that an object goes, and delete handlers run, when its daemons have ended.
func TestADeletionWaitsForDaemons(t *testing.T) {
	ending := func(d time.Duration, options ...dsl.Option) func(*dsl.Resource, *vigil) {
		return func(foo *dsl.Resource, v *vigil) { foo.Daemon("watch", v.watches(lasts(v, d)), options...) }
	}
	gone := func(s *scene.Stage, want bool) {
		s.T.Helper()
		s.Settle()
		if got := s.Web() == nil; got != want {
			s.T.Errorf("the object is gone: %v, want %v", got, want)
		}
	}
	tests := map[string]struct {
		operator func(*dsl.Resource, *vigil)
		play     func(s *scene.Stage, v *vigil)
	}{
		"the finalizer is there before the daemon begins, and goes with its end": {ending(10 * time.Second), func(s *scene.Stage, v *vigil) {
			s.Launch()
			s.Create(scene.Web)
			v.want("begins: 1")
			s.Wrote("patch foos default/web")
			s.Remove()
			v.want("stops: the object is being deleted")
			s.Advance(9 * time.Second)
			gone(s, false)
			s.Advance(time.Second)
			v.want("ends")
			gone(s, true)
			s.Wrote("patch foos default/web")
		}},
		"one that ends at once holds nothing up": {watching(), func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Remove()
			gone(s, true)
			v.want("begins: 1", "stops: the object is being deleted")
		}},
		"without a finalizer the object goes at once": {ending(10*time.Second, dsl.NoFinalizer()), func(s *scene.Stage, v *vigil) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote()
			s.Remove()
			gone(s, true)
			v.want("begins: 1", "stops: the object is gone")
		}},
		"objects that its filters do not match have no finalizer": {watching(dsl.Label("watched", "yes")), func(s *scene.Stage, v *vigil) {
			s.Launch()
			s.Create(scene.Web)
			s.Wrote()
			s.Set("yes", "metadata", "labels", "watched")
			s.Wrote("patch foos default/web")
			v.want("begins: 1")
			s.Set("no", "metadata", "labels", "watched")
			s.Wrote("patch foos default/web")
			if got := s.Web().GetFinalizers(); len(got) > 0 {
				s.T.Errorf("it keeps %v", got)
			}
		}},
		"the finalizer stays while a daemon that does not match any more ends": {ending(10*time.Second, dsl.When(red)), func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Set("blue", "spec", "color")
			s.Settle()
			s.Remove()
			gone(s, false)
			s.Advance(10 * time.Second)
			gone(s, true)
			v.want("begins: 1", "sees: 1", "stops: its filters do not match", "ends")
		}},
		"one that is done lets the object go": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", func(context.Context, *dsl.DaemonRequest) error { return nil })
		}, func(s *scene.Stage, _ *vigil) {
			s.Begin()
			if got := s.Web().GetFinalizers(); len(got) > 0 {
				s.T.Errorf("it keeps %v", got)
			}
			s.Resize(2)
			s.Wrote()
		}},
		"delete handlers run when it has ended": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", v.watches(lasts(v, 10*time.Second)))
			foo.OnDelete("farewell", func(context.Context, *dsl.Request) error {
				v.note("farewell")
				return nil
			})
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Remove()
			v.want("begins: 1", "stops: the object is being deleted")
			s.Advance(10 * time.Second)
			v.want("ends", "farewell")
			gone(s, true)
			s.Wrote("patch foos default/web")
		}},
		"a process that begins with an object that is being deleted starts none": {watching(), func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Process.Kill()
			v.want("begins: 1", "stops: the operator stops")
			s.Remove()
			s.Process.Restart()
			v.want()
			gone(s, true)
		}},
		"an operator without the daemon takes the finalizer away": {watching(), func(s *scene.Stage, _ *vigil) {
			s.Begin()
			if err := s.Process.Stop(); err != nil {
				s.T.Error(err)
			}
			next := dsl.New("op")
			next.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnReconcile("other", scene.Succeeds) })
			p := s.Start(next)
			if got := s.Web().GetFinalizers(); len(got) > 0 {
				s.T.Errorf("it keeps %v", got)
			}
			if err := p.Stop(); err != nil {
				s.T.Error(err)
			}
		}},
		"one that does not stop is named, and the object goes without it": {ending(time.Hour, dsl.StopWithin(time.Minute)), func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Remove()
			s.Advance(59 * time.Second)
			gone(s, false)
			s.Advance(time.Second)
			gone(s, true)
			if got := checkMessage(s, "daemons/"+scene.Foos); got != "watch of default/web was asked to stop 1m0s ago and still runs" {
				s.T.Errorf("/readyz says %q", got)
			}
			s.Create(scene.Web)
			s.Advance(58 * time.Minute)
			v.want("begins: 1", "stops: the object is being deleted")
			s.Advance(time.Minute)
			v.want("ends", "begins: 1")
			if got := checkMessage(s, "daemons/"+scene.Foos); got != "" {
				s.T.Errorf("/readyz says %q", got)
			}
		}},
		"the operator's grace period is its time where it names none": {func(foo *dsl.Resource, v *vigil) { ending(30*time.Second)(foo, v) }, func(s *scene.Stage, v *vigil) {
			s.Operator.Settings.GracePeriod = 7 * time.Second
			s.Begin()
			s.Remove()
			s.Advance(6 * time.Second)
			gone(s, false)
			s.Advance(time.Second)
			gone(s, true)
			s.Advance(time.Minute)
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { playDaemon(t, tt.operator, tt.play) })
	}
}

// checkMessage is the message of a check that is not well, empty when it is, or is not there.
func checkMessage(s *scene.Stage, name string) string {
	for _, c := range s.Process.Engine().Ready() {
		if c.Name == name {
			return c.Message
		}
	}
	return ""
}

// TestADaemonMayWriteWhileItStops holds that it may write until its time is over, and not after.
func TestADaemonMayWriteWhileItStops(t *testing.T) {
	tests := map[string]struct {
		after time.Duration
		stop  func(s *scene.Stage)
		wrote bool
	}{
		"in its time":                 {10 * time.Second, func(s *scene.Stage) { s.Set("blue", "spec", "color") }, true},
		"after its time":              {40 * time.Second, func(s *scene.Stage) { s.Set("blue", "spec", "color") }, false},
		"in the grace period":         {10 * time.Second, func(s *scene.Stage) { go func() { _ = s.Process.Stop() }() }, true},
		"when the process was killed": {10 * time.Second, func(s *scene.Stage) { go s.Process.Kill() }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			playDaemon(t, func(foo *dsl.Resource, v *vigil) {
				foo.Daemon("watch", v.watches(func(ctx context.Context, r *dsl.DaemonRequest) {
					<-time.After(tt.after)
					r.Patch.SetStatus("watched", false)
					if err := r.Flush(ctx); err == nil {
						v.t.Error("a write with the daemon's own context succeeds after its end")
					}
					err := r.Flush(context.WithoutCancel(ctx))
					if (err == nil) != tt.wrote {
						v.t.Errorf("the write ends with %v", err)
					}
				}), dsl.When(red), dsl.StopWithin(30*time.Second))
			}, func(s *scene.Stage, v *vigil) {
				s.Operator.Settings.GracePeriod = 25 * time.Second
				s.Begin()
				tt.stop(s)
				s.Advance(time.Minute)
				_, found, _ := unstructured.NestedBool(s.Web().Object, "status", "watched")
				if found != tt.wrote {
					t.Errorf("its last word is there: %v, want %v", found, tt.wrote)
				}
			})
		})
	}
}

// TestDaemonsStopWhenLeadershipIsLost holds that daemons stop with it, that nothing of them is written after it, and that
// the next leader has its own.
func TestDaemonsStopWhenLeadershipIsLost(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		operator := func(v *vigil) *dsl.Operator {
			op := dsl.New("op")
			op.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
			op.Resource(scene.Foos, func(foo *dsl.Resource) {
				foo.Daemon("watch", v.watches(func(ctx context.Context, r *dsl.DaemonRequest) {
					r.Patch.SetStatus("left", true)
					if err := r.Flush(context.WithoutCancel(ctx)); err == nil && r.Stop() == dsl.StopLeadership {
						t.Error("a daemon writes after leadership was lost")
					}
				}))
			})
			return op
		}
		one, two := newVigil(t), newVigil(t)
		first := s.Start(operator(one))
		s.Advance(time.Second)
		s.Start(operator(two))
		s.Create(scene.Web)
		one.want("begins: 1")
		two.want()
		first.Sever()
		s.Advance(2 * time.Minute)
		one.want("stops: leadership is lost")
		two.want("begins: 1")
		first.Restore()
		s.Advance(time.Minute)
		s.Resize(2)
		one.want()
		two.want("sees: 2")
		two.mu.Lock()
		defer two.mu.Unlock()
		two.running = map[string]int{} // the test ends in the middle of its life
	})
}

// TestTheProcessDoesNotWaitForADaemonForEver holds that one which does not stop is named when the process goes without it.
func TestTheProcessDoesNotWaitForADaemonForEver(t *testing.T) {
	playDaemon(t, func(foo *dsl.Resource, v *vigil) {
		foo.Daemon("watch", v.watches(lasts(v, 10*time.Minute)))
	}, func(s *scene.Stage, v *vigil) {
		s.Operator.Settings.GracePeriod = 10 * time.Second
		s.Begin()
		begun := time.Now()
		err := s.Process.Stop()
		if took := time.Since(begun); took > 16*time.Second {
			t.Errorf("the process takes %v", took)
		}
		if err == nil || !strings.Contains(err.Error(), "watch of default/web") {
			t.Errorf("it ends with %v", err)
		}
		s.Advance(10 * time.Minute)
	})
}

// TestMetricsCountDaemons holds the metrics of daemons.
func TestMetricsCountDaemons(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s, v, metrics := scene.NewStage(t, c), newVigil(t), ops.NewMetrics()
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.Daemon("watch", v.watches(lasts(v, time.Minute)), dsl.When(red))
		})
		s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = metrics })
		want := func(running, late int) {
			t.Helper()
			s.Settle()
			answer := httptest.NewRecorder()
			metrics.Handler(logr.Discard()).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
			for state, n := range map[string]int{"running": running, "late": late} {
				line := fmt.Sprintf("handwerk_daemons{handler=\"watch\",resource=\"%s\",state=\"%s\"} %d\n", scene.Foos, state, n)
				if !strings.Contains(answer.Body.String(), line) {
					t.Errorf("metrics lack %s", line)
				}
			}
		}
		want(0, 0)
		for i := range 3 {
			s.Create(strings.Replace(scene.Web, "name: web", fmt.Sprintf("name: web-%d", i), 1))
		}
		want(3, 0)
		s.Update(scene.Foos, "default", "web-1", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "blue", "spec", "color")
		})
		want(3, 0)
		s.Advance(30 * time.Second)
		want(2, 1)
		s.Advance(time.Minute)
		want(2, 0)
		_ = s.Process.Stop() // which reports those that take their time
		s.Advance(2 * time.Minute)
	})
}

// TestStoppedDaemonsLeaveNoGoroutine holds that 10,000 daemons that were started and stopped leave nothing behind.
func TestStoppedDaemonsLeaveNoGoroutine(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	const objects = 1_000
	playDaemon(t, func(foo *dsl.Resource, v *vigil) {
		foo.Workers = 16
		foo.Daemon("watch", func(ctx context.Context, r *dsl.DaemonRequest) error {
			defer v.enter(r)()
			<-ctx.Done()
			return nil
		}, dsl.When(red), dsl.NoFinalizer())
	}, func(s *scene.Stage, v *vigil) {
		s.Launch()
		before := runtime.NumGoroutine()
		for i := range objects {
			s.Create(strings.Replace(scene.Web, "name: web", fmt.Sprintf("name: web-%d", i), 1))
		}
		s.Settle()
		if got := v.runs(); got != objects {
			t.Errorf("%d daemons run for %d objects", got, objects)
		}
		// At most: one that has just ended may still have been counted before.
		if got := runtime.NumGoroutine() - before; got > objects+200 {
			t.Errorf("%d daemons have %d goroutines", objects, got)
		}
		for i := range objects / 2 {
			s.Update(scene.Foos, "default", fmt.Sprintf("web-%d", i), func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "blue", "spec", "color")
			})
			s.Delete(scene.Foos, "default", fmt.Sprintf("web-%d", objects/2+i))
		}
		s.Advance(time.Minute)
		if got := runtime.NumGoroutine() - before; got > 200 {
			t.Errorf("%d goroutines are left", got)
		}
		if got := v.runs(); got != 0 {
			t.Errorf("%d daemons still run", got)
		}
	})
}

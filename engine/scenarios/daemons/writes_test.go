// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package daemons_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// answers is a daemon that does something at its start and after each change.
func (v *vigil) answers(do func(ctx context.Context, r *dsl.DaemonRequest) error) dsl.DaemonFunc {
	return func(ctx context.Context, r *dsl.DaemonRequest) error {
		defer v.enter(r)()
		for {
			if err := do(ctx, r); err != nil {
				return err
			}
			select {
			case <-r.Changes():
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// reportsSize sets the size that it sees in the status.
func (v *vigil) reportsSize(ctx context.Context, r *dsl.DaemonRequest) error {
	size := scene.SizeOf(r.Current())
	v.note("sees: %d", size)
	r.Patch.SetStatus("size", size)
	return r.Flush(ctx)
}

// TestADaemonsOwnWritesAreNoNewsToIt holds how a daemon's writes go out, and what they are to itself and to others.
func TestADaemonsOwnWritesAreNoNewsToIt(t *testing.T) {
	playDaemons(t, map[string]daemonScenario{
		"its own writes are no news to it": {func(foo *dsl.Resource, v *vigil) {
			n := int64(0)
			foo.Daemon("watch", v.answers(func(ctx context.Context, r *dsl.DaemonRequest) error {
				n++
				v.note("sees: %d", scene.SizeOf(r.Current()))
				r.Patch.SetStatus("looks", n)
				r.Patch.Annotate("looks", fmt.Sprint(n))
				if err := r.Flush(ctx); err != nil {
					return err
				}
				if got, _, _ := unstructured.NestedInt64(r.Current().Object, "status", "looks"); got != n {
					v.t.Errorf("it finds %d looks, and has written %d", got, n)
				}
				return nil
			}), dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Launch()
			s.Create(scene.Web)
			v.want("sees: 1")
			s.Wrote("patch foos/status default/web", "patch foos default/web")
			s.Resize(2)
			v.want("sees: 2")
			s.Advance(time.Hour)
			v.want()
			s.Wrote("patch foos/status default/web", "patch foos default/web")
		}},
		"nor while watches lag": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", v.answers(v.reportsSize), dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want("sees: 1")
			s.HoldWatches(scene.Foos)
			s.Resize(2)
			s.Settle()
			s.ReleaseWatches(scene.Foos)
			v.want("sees: 2")
			s.Wrote("patch foos/status default/web")
			s.Advance(time.Minute)
			v.want()
		}},
		"nor where caches hold keys alone": {func(foo *dsl.Resource, v *vigil) {
			foo.Cache = dsl.CacheLive
			foo.Daemon("watch", v.answers(v.reportsSize), dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want("sees: 1")
			s.Resize(2)
			v.want("sees: 2")
			s.Wrote("patch foos/status default/web")
			s.Advance(time.Hour)
			v.want()
			s.Wrote()
		}},
		"what is so already is not sent": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", v.answers(v.reportsSize), dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Wrote()
			s.Set("blue", "spec", "color")
			v.want("sees: 1", "sees: 1")
			s.Wrote()
		}},
		"handlers run for what it changes, if they look at that, and for nothing else": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", v.answers(func(ctx context.Context, r *dsl.DaemonRequest) error {
				r.Patch.SetStatus("size", scene.SizeOf(r.Current()))
				if scene.SizeOf(r.Current()) == 2 {
					r.Patch.Set("spec.color", "green")
				}
				return r.Flush(ctx)
			}), dsl.NoFinalizer())
			foo.OnUpdate("other", func(_ context.Context, r *dsl.Request) error {
				v.note("other: %d", scene.SizeOf(r.Object))
				return nil
			}, dsl.Field("spec.size"))
			foo.OnField("spec.color", "color", func(_ context.Context, r *dsl.Request) error {
				color, _, _ := unstructured.NestedString(r.Object.Object, "spec", "color")
				v.note("color: %s", color)
				return nil
			})
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want()
			s.Resize(2)
			v.want("other: 2", "color: green")
		}},
		"what handlers change is news": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", v.watches(), dsl.NoFinalizer())
			foo.OnField("spec.color", "grow", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Set("spec.size", 9)
				return nil
			})
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			v.want("begins: 1")
			s.Set("blue", "spec", "color")
			s.Settle()
			v.mu.Lock()
			defer v.mu.Unlock()
			if got := strings.Join(v.lines, ", "); !strings.HasSuffix(got, "sees: 9") {
				v.t.Errorf("it notes %s", got)
			}
		}},
		"it begins with what handlers of the same pass have changed": {func(foo *dsl.Resource, v *vigil) {
			foo.OnCreate("grow", func(_ context.Context, r *dsl.Request) error {
				r.Patch.Set("spec.size", 9)
				return nil
			})
			foo.Daemon("watch", v.watches())
		}, func(s *scene.Stage, v *vigil) {
			s.HoldWatches(scene.Foos)
			s.Launch()
			s.Create(scene.Web)
			s.ReleaseWatches(scene.Foos)
			v.want("begins: 9")
		}},
		"a conflict is no loss, and what others wrote is news": {func(foo *dsl.Resource, v *vigil) {
			foo.Daemon("watch", v.answers(func(ctx context.Context, r *dsl.DaemonRequest) error {
				size := scene.SizeOf(r.Current())
				v.note("sees: %d", size)
				<-time.After(time.Second)
				r.Patch.SetStatus("size", size)
				return r.Flush(ctx)
			}), dsl.NoFinalizer())
		}, func(s *scene.Stage, v *vigil) {
			s.Begin()
			s.Advance(2 * time.Second)
			s.HoldWatches(scene.Foos)
			s.Resize(2)
			s.ReleaseWatches(scene.Foos)
			s.Settle()
			s.HoldWatches(scene.Foos)
			s.Resize(3)
			s.Advance(2 * time.Second)
			s.ReleaseWatches(scene.Foos)
			s.Advance(10 * time.Second)
			v.want("sees: 1", "sees: 2", "sees: 3")
			if got, _, _ := unstructured.NestedInt64(s.Web().Object, "status", "size"); got != 3 {
				s.T.Errorf("status.size is %d, want 3", got)
			}
		}},
	})
}

// eventTexts are those of the Events that there are, each once.
func eventTexts(s *scene.Stage) string {
	s.Advance(time.Second)
	var out []string
	for _, e := range s.Events() {
		if len(out) == 0 || out[len(out)-1] != e.Reason {
			out = append(out, e.Reason)
		}
	}
	return strings.Join(out, ", ")
}

// TestDaemonsStartAgainInTheNextTerm holds that a process which leads again starts daemons again, after those of the term before
// have ended, and that one which was done stays so.
func TestDaemonsStartAgainInTheNextTerm(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s, v := scene.NewStage(t, c), newVigil(t)
		s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.Daemon("watch", v.watches(lasts(v, 5*time.Minute)), dsl.NoFinalizer())
			foo.Daemon("once", func(context.Context, *dsl.DaemonRequest) error { v.note("once"); return nil }, dsl.NoFinalizer(), dsl.InitialDelay(time.Second))
		})
		s.Launch()
		s.Create(scene.Web)
		s.Advance(2 * time.Second)
		v.want("begins: 1", "once")
		s.Process.Sever()
		s.Advance(time.Minute)
		v.want("stops: leadership is lost")
		s.Process.Restore()
		s.Advance(2 * time.Minute)
		v.want()
		s.Advance(5 * time.Minute)
		v.want("ends", "begins: 1")
		_ = s.Process.Stop()
		s.Advance(time.Hour)
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"net/http/httptest"
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

const bar = `{apiVersion: example.org/v1, kind: Bar, metadata: {name: bar}, spec: {size: 1}}`

// two is a stage with an operator of two resources, Foos and Bars.
type two struct {
	*scene.Stage
	metrics *ops.Metrics
}

// pair plays a scenario of an operator for Foos and Bars. What a Foo's handler does, it is given.
func pair(t *testing.T, run dsl.Func, play func(s *two)) {
	t.Helper()
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"}, kit.Resource{Name: scene.Bars, Kind: "Bar"})
		s := &two{scene.NewStage(t, c), ops.NewMetrics()}
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.Owns(scene.ConfigMaps)
			foo.OnCreate("foo", s.Note("foo", run))
			foo.OnUpdate("foo-changed", s.Note("foo-changed"))
			foo.OnResume("foo-again", s.Note("foo-again"))
		})
		s.Operator.Resource(scene.Bars, func(bar *dsl.Resource) {
			bar.OnReconcile("bar", s.Note("bar"))
		})
		s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Metrics = s.metrics })
		play(s)
	})
}

// resize changes an object.
func (s *two) resize(resource, name string) {
	s.T.Helper()
	s.Update(resource, "default", name, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, int64(2), "spec", "size"); err != nil {
			s.T.Error(err)
		}
	})
}

// stopFoos ends the work on Foos.
func (s *two) stopFoos() {
	s.T.Helper()
	engine.StopResource(s.T.Context(), s.Process.Engine(), scene.Foos)
	s.Settle()
}

// startFoos begins with it again.
func (s *two) startFoos() {
	s.T.Helper()
	if err := engine.StartResource(s.Process.Engine(), s.Operator.Resources()[0]); err != nil {
		s.T.Error(err)
	}
	s.Settle()
}

// lines returns the lines of checks and metrics about Foos.
func (s *two) lines() (out []string) {
	for _, c := range s.Process.Engine().Ready() {
		if strings.Contains(c.Name, scene.Foos) || c.State == ops.Fail {
			out = append(out, c.String())
		}
	}
	w := httptest.NewRecorder()
	s.metrics.Handler(logr.Discard()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.Contains(line, scene.Foos) {
			out = append(out, line)
		}
	}
	return out
}

// watched reports whether the process watches a resource: whether it asks again when its watches are cut.
func (s *two) watched(resource string) bool {
	end := s.FailWhile("watch", resource, errors.New("no"))
	s.CutWatches(resource)
	s.Advance(10 * time.Second)
	asked := end() > 0
	s.Advance(time.Minute)
	return asked
}

// TestAResourceStopsAndStartsSingly holds that one resource of an operator can be taken away and brought back
// while the others are worked on.
func TestAResourceStopsAndStartsSingly(t *testing.T) {
	t.Run("its informers end, its keys are not worked, no check or metric lists it, and the other goes on", func(t *testing.T) {
		pair(t, scene.Succeeds, func(s *two) {
			s.Create(scene.Web)
			s.Create(bar)
			s.CalledInAnyOrder("bar create", "foo create")
			if len(s.lines()) == 0 {
				t.Error("no check or metric lists a resource that is worked on")
			}
			s.stopFoos()
			s.Resize(2)
			s.Create(strings.Replace(scene.Web, "web", "later", 1))
			s.Advance(time.Minute)
			s.Called()
			if lines := s.lines(); len(lines) > 0 {
				t.Errorf("it is still listed:\n%s", strings.Join(lines, "\n"))
			}
			for resource, want := range map[string]bool{scene.Foos: false, scene.ConfigMaps: false, scene.Bars: true} {
				if s.watched(resource) != want {
					t.Errorf("%s are watched: %t", resource, !want)
				}
			}
			s.Take()
			s.resize(scene.Bars, "bar")
			s.Called("bar update")
		})
	})
	t.Run("it resumes", func(t *testing.T) {
		pair(t, scene.Succeeds, func(s *two) {
			s.Create(scene.Web)
			s.Create(strings.Replace(scene.Web, "web", "changed", 1))
			s.Forget()
			s.stopFoos()
			s.resize(scene.Foos, "changed")
			s.Create(strings.Replace(scene.Web, "web", "later", 1))
			s.startFoos()
			s.CalledInAnyOrder("foo create", "foo-again resume", "foo-again resume", "foo-changed update")
			if len(s.lines()) == 0 {
				t.Error("no check or metric lists a resource that is worked on again")
			}
			s.Resize(3)
			s.Called("foo-changed update")
		})
	})
	t.Run("a handler gets the grace period", func(t *testing.T) {
		for name, one := range map[string]struct {
			needs time.Duration
			want  string
		}{
			"and ends within it":        {10 * time.Second, "done"},
			"and its context ends then": {time.Hour, "cut off after 20s"},
		} {
			t.Run(name, func(t *testing.T) {
				var s *two
				slow := func(c context.Context, r *dsl.Request) error {
					begun := time.Now()
					select {
					case <-time.After(one.needs):
						s.Add("done")
					case <-c.Done():
						s.Add("cut off after " + time.Since(begun).String())
					}
					return c.Err()
				}
				pair(t, slow, func(on *two) {
					s = on
					s.Create(scene.Web)
					s.Called("foo create")
					s.stopFoos()
					s.Called(one.want)
					s.Create(bar)
					s.Called("bar create")
				})
			})
		}
	})
	t.Run("its daemons stop, and start again with it", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
			s := &two{Stage: scene.NewStage(t, c), metrics: ops.NewMetrics()}
			s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
				foo.Daemon("watch", func(ctx context.Context, _ *dsl.DaemonRequest) error {
					s.Add("begins")
					<-ctx.Done()
					s.Add("stops: " + context.Cause(ctx).Error())
					return ctx.Err()
				})
			})
			s.Begin()
			s.stopFoos()
			s.Called("stops: the resource is stopped")
			s.startFoos()
			s.Called("begins")
		})
	})
	t.Run("the others do not wait for one that was stopped before it could be watched", func(t *testing.T) {
		kit.Run(t, func(t *testing.T, c *kit.Cluster) {
			c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"}, kit.Resource{Name: scene.Bars, Kind: "Bar"})
			c.DelayNext("list", scene.Foos, time.Hour)
			c.DelayNext("watch", scene.Foos, time.Hour)
			s := &two{Stage: scene.NewStage(t, c), metrics: ops.NewMetrics()}
			s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnReconcile("foo", s.Note("foo")) })
			s.Operator.Resource(scene.Bars, func(bar *dsl.Resource) { bar.OnReconcile("bar", s.Note("bar")) })
			s.Launch()
			s.Create(bar)
			s.Called()
			s.stopFoos()
			s.Called("bar resume")
		})
	})
	t.Run("a process that stands by works on it once it leads", func(t *testing.T) {
		scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, second := scene.StartReplicas(s, dsl.LeaderLease)
			on := &two{Stage: s, metrics: ops.NewMetrics()}
			s.Process, s.Operator = second, scene.Replica(&s.Journal, "second", dsl.LeaderLease)
			s.Create(scene.Web)
			s.Called("first create")
			on.stopFoos()
			on.startFoos()
			s.Called()
			if err := first.Stop(); err != nil {
				t.Error(err)
			}
			scene.AwaitTakeover(s)
		}})
	})
}

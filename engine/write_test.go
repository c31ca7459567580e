// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

// reports is a handler that sets status to what the spec says.
func reports(_ context.Context, r *dsl.Request) error {
	size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
	r.Patch.SetStatus("size", size)
	r.Patch.SetCondition("Ready", "True", "Done", "All is well.")
	return nil
}

// keepsChild is a handler that keeps a Deployment.
func keepsChild(ctx context.Context, r *dsl.Request) error {
	size, _ := dsl.MustParsePath("spec.size").In(r.Object.Object)
	_, err := r.Children.Apply(ctx, deployment(r.Object.GetName(), size))
	return err
}

func deployment(name string, replicas any) map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"replicas": replicas},
	}
}

// TestWriteBudget is law 5: the number of write requests of each situation.
func TestWriteBudget(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a level-triggered handler needs none": {level, func(s *stage) {
			s.Launch()
			s.Create(web)
			s.Wrote()
			s.size(2)
			s.Wrote()
		}},
		"one create handler needs one": {
			func(foo *dsl.Resource, j *journal) { foo.OnCreate("made", j.Note("made")) },
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Wrote("patch foos default/web")
			},
		},
		"one update handler needs one": {
			func(foo *dsl.Resource, j *journal) { foo.OnUpdate("changed", j.Note("changed")) },
			func(s *stage) {
				s.begin()
				s.size(2)
				s.Wrote("patch foos default/web")
			},
		},
		"one that sets status needs two, the status first": {
			func(foo *dsl.Resource, _ *journal) { foo.On(both(), "report", reports) },
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Wrote("patch foos/status default/web", "patch foos default/web")
			},
		},
		"a level-triggered one that sets status needs one, and none when it is so": {
			func(foo *dsl.Resource, _ *journal) { foo.OnReconcile("report", reports) },
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Wrote("patch foos/status default/web")
				s.set("x", "metadata", "labels", "tier")
				s.Wrote()
			},
		},
		"many that succeed need the same as one": {
			func(foo *dsl.Resource, j *journal) {
				for _, id := range []string{"a", "b", "c", "d"} {
					foo.On(both(), id, j.Note(id, reports))
				}
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Wrote("patch foos/status default/web", "patch foos default/web")
			},
		},
		"a finalizer at first sight costs one more, in the same pass": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("made", j.Note("made"))
				foo.OnDelete("left", j.Note("left"))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Wrote("patch foos default/web", "patch foos default/web")
				s.Called("made create")
			},
		},
		"a finalizer with nothing else to do costs one": {
			func(foo *dsl.Resource, j *journal) { foo.OnDelete("left", j.Note("left")) },
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Wrote("patch foos default/web")
			},
		},
		"a delete handler that succeeds costs one": {
			func(foo *dsl.Resource, j *journal) { foo.OnDelete("left", j.Note("left")) },
			func(s *stage) {
				s.begin()
				s.remove()
				s.Wrote("patch foos default/web")
				if s.web() != nil {
					s.t.Error("the object is still there")
				}
			},
		},
		"retries that are due within ten seconds cost nothing": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("made", j.Note("made", temporary(soon), temporary(soon), temporary(soon), succeeds))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("made create", "made create 2", "made create 3", "made create 4")
				s.Wrote("patch foos default/web")
			},
		},
		"later ones cost one each": {
			func(foo *dsl.Resource, j *journal) {
				foo.OnCreate("made", j.Note("made", temporary(late), temporary(late), succeeds))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Advance(time.Hour)
				s.Called("made create", "made create 2", "made create 3")
				s.Wrote("patch foos default/web", "patch foos default/web", "patch foos default/web")
			},
		},
		"children that are so already cost nothing": {
			func(foo *dsl.Resource, j *journal) {
				foo.Owns(deployments)
				foo.OnReconcile("child", j.Note("child", keepsChild))
			},
			func(s *stage) {
				s.Launch()
				s.Create(web)
				s.Wrote("patch deployments default/web")
				s.set("blue", "spec", "color")
				s.Wrote()
				s.size(2)
				s.Wrote("patch deployments default/web")
			},
		},
	})
}

// TestWriteBudgetWithObservedGeneration is law 5 where the server keeps count.
func TestWriteBudgetWithObservedGeneration(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo", ObservedGeneration: true})
		s := newStage(t, c)
		s.Operator.Resource(foos, func(foo *dsl.Resource) {
			foo.ObservedGeneration = true
			foo.On(both(), "report", s.Note("report", reports), dsl.Field("spec"), dsl.NoOld())
		})
		s.Launch()
		s.Create(web)
		s.Called("report create")
		s.Wrote("patch foos/status default/web")
		s.size(2)
		s.Called("report update")
		s.Wrote("patch foos/status default/web")
		s.set("x", "metadata", "labels", "tier")
		s.Process.Restart()
		s.Called()
		s.Wrote()
		if keys := s.web().GetAnnotations(); len(keys) > 0 {
			t.Errorf("annotations %v: nothing was to be stored but the generation", keys)
		}
		if n, _, _ := unstructured.NestedInt64(s.web().Object, "status", "observedGeneration"); n != 2 {
			t.Errorf("status.observedGeneration is %d, want 2", n)
		}
	})
}

// TestNoChangeNoWrite is law 4, for operators of each kind.
func TestNoChangeNoWrite(t *testing.T) {
	operators := map[string]func(foo *dsl.Resource, j *journal){
		"level-triggered, with status and a child": func(foo *dsl.Resource, j *journal) {
			foo.Owns(deployments)
			foo.Resync = 10 * time.Minute
			foo.OnReconcile("report", j.Note("report", reports))
			foo.OnReconcile("child", j.Note("child", keepsChild))
		},
		"edge-triggered, with a finalizer": edges,
		"of both kinds, with one that failed for good": func(foo *dsl.Resource, j *journal) {
			foo.Resync = 10 * time.Minute
			foo.On(both(), "report", j.Note("report", reports))
			foo.OnCreate("broken", fails(dsl.Permanent(errAgain)))
			foo.OnReconcile("sync", j.Note("sync"))
		},
		"that retries in vain": func(foo *dsl.Resource, j *journal) {
			foo.OnReconcile("vain", fails(errAgain))
		},
	}
	quiet := map[string]func(s *stage){
		"a restart":            func(s *stage) { s.Process.Restart() },
		"a killed process":     func(s *stage) { s.Process.Kill(); s.Process.Restart() },
		"a relist":             func(s *stage) { s.ExpireWatches(); s.Advance(time.Minute) },
		"an ended watch":       func(s *stage) { s.CutWatches(); s.Advance(time.Minute) },
		"a resync":             func(s *stage) { s.Advance(time.Hour) },
		"somebody's status":    func(s *stage) { s.set("x", "status", "theirs") },
		"somebody's ownership": func(s *stage) { s.Apply("somebody", web) },
	}
	for name, operator := range operators {
		for cause, happens := range quiet {
			t.Run(cause+" of one "+name, func(t *testing.T) {
				perform(t, scenario{operator, func(s *stage) {
					s.begin()
					s.Advance(time.Hour)
					s.Forget()
					happens(s)
					s.Wrote()
				}})
			})
		}
	}
}

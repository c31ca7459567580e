// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package writes_test

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// limits wants a limit of 400 for each of spec.size, in spec or in status.
func limits(part string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		n, _ := scene.ValueAt(r.Object, "spec.size").(int64)
		if part == "status" {
			r.Patch.SetStatus("limit", n*400)
		} else {
			r.Patch.Set(part+".limit", n*400)
		}
		return nil
	}
}

// wantCalls checks how often a handler was called for web since before.
func wantCalls(s *scene.Stage, handler string, before, least, most int) {
	s.T.Helper()
	s.Settle()
	if n := len(s.Of(handler, "web")) - before; n < least || n > most {
		s.T.Errorf("%s was called %d times, want %d to %d", handler, n, least, most)
	}
}

// TestARefusedPatchFailsItsHandler is law 9 for a patch that the server does not take: it is a failure of
// the handler whose patch it is, and of no other.
func TestARefusedPatchFailsItsHandler(t *testing.T) {
	two := func(part string, causes ...dsl.Cause) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.On(causes, "good", j.Note("good", scene.Reports))
			foo.On(causes, "bad", j.Note("bad", limits(part)), dsl.Retries(2))
			foo.On(causes, "last", j.Note("last", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("copy", scene.ValueAt(r.Object, "spec.size"))
				return nil
			}))
		}
	}
	mended := func(part string) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.RefuseLargeLimits()
			s.Begin()
			before := map[string]int{}
			for _, id := range []string{"good", "bad", "last"} {
				before[id] = len(s.Of(id, "web"))
			}
			s.Resize(2)
			s.Advance(time.Hour)
			wantCalls(s, "good", before["good"], 1, 1)
			wantCalls(s, "bad", before["bad"], 1, 3)
			wantCalls(s, "last", before["last"], 1, 2) // it may have seen what the server then refused
			s.WantField("status.size", int64(2))
			s.WantField("status.copy", int64(2))
			s.WantWarning("bad")
			s.Resize(1) // a person mends it
			s.Advance(time.Minute)
			s.WantField(part+".limit", int64(400))
			s.WantField("status.copy", int64(1))
		}
	}
	deleting := func(options ...dsl.Option) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) {
			foo.OnDelete("good", j.Note("good"))
			foo.OnDelete("bad", j.Note("bad", limits("spec")), append(options, dsl.Retries(1))...)
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"level-triggered handlers beside it run once":                 {Operator: two("spec", dsl.Reconcile), Play: mended("spec")},
		"handlers of create and update beside it run once":            {Operator: two("spec", dsl.Create, dsl.Update), Play: mended("spec")},
		"level-triggered handlers run once beside one of status":      {Operator: two("status", dsl.Reconcile), Play: mended("status")},
		"handlers of create and update run once beside one of status": {Operator: two("status", dsl.Create, dsl.Update), Play: mended("status")},
		"what others did is not repeated after a restart, whatever becomes of it": {Operator: two("spec", dsl.Create, dsl.Update), Play: func(s *scene.Stage) {
			s.RefuseLargeLimits()
			s.Begin()
			s.Resize(2)
			s.Advance(time.Hour)
			before := len(s.Of("good", "web"))
			s.Process.Restart()
			s.Advance(time.Hour)
			wantCalls(s, "good", before, 0, 0)
		}},
		"it does not hold an object that its handler lets go": {Operator: deleting(dsl.Release()), Play: func(s *scene.Stage) {
			s.RefuseLargeLimits()
			s.Begin()
			s.Resize(2)
			s.Remove()
			s.Advance(time.Hour)
			wantCalls(s, "good", 0, 1, 1)
			wantCalls(s, "bad", 0, 1, 2)
			if s.Web() != nil {
				s.T.Error("the object is still there")
			}
		}},
		"it holds an object as any failing delete handler does, and is named": {Operator: deleting(), Play: func(s *scene.Stage) {
			s.RefuseLargeLimits()
			s.Begin()
			s.Resize(2)
			s.Remove()
			s.Advance(time.Hour)
			wantCalls(s, "good", 0, 1, 1)
			wantCalls(s, "bad", 0, 1, 2)
			s.WantWarning("bad")
			if s.Web() == nil {
				s.T.Error("the object is gone")
			}
			s.Resize(1) // a person mends it
			s.Advance(time.Minute)
			wantCalls(s, "good", 0, 1, 1)
			if s.Web() != nil {
				s.T.Error("the object is still there")
			}
		}},
	})
}

// TestLargeNumbersThatDifferAreWritten holds that whole numbers which no floating-point number distinguishes are written.
func TestLargeNumbersThatDifferAreWritten(t *testing.T) {
	const large = 1 << 53
	writing := func(write dsl.Func) func(*dsl.Resource, *kit.Journal) {
		return func(foo *dsl.Resource, j *kit.Journal) { foo.OnReconcile("write", j.Note("write", write)) }
	}
	grow := func(path string) func(s *scene.Stage) {
		return func(s *scene.Stage) {
			s.Begin()
			s.Resize(large)
			s.WantField(path, int64(large))
			s.Resize(large + 1)
			s.WantField(path, int64(large+1))
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"in status": {Operator: writing(scene.Reports), Play: grow("status.size")},
		"in spec":   {Operator: writing(copies("spec.size", "spec.copy")), Play: grow("spec.copy")},
		"what changed by one is an update": {
			Operator: func(foo *dsl.Resource, j *kit.Journal) { foo.OnField("spec.size", "changed", j.Note("changed")) },
			Play: func(s *scene.Stage) {
				s.Begin()
				s.Resize(large)
				s.Settle()
				s.Resize(large + 1)
				s.Called("changed update", "changed update")
			},
		},
	})
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"}, kit.Resource{Name: scene.Bars, Kind: "Bar"})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.Owns(scene.Bars)
			foo.OnReconcile("child", func(c context.Context, r *dsl.Request) error {
				_, err := r.Children.Apply(c, map[string]any{
					"apiVersion": "example.org/v1", "kind": "Bar", "metadata": map[string]any{"name": "web"},
					"spec": map[string]any{"size": scene.ValueAt(r.Object, "spec.size")},
				})
				return err
			})
		})
		s.Begin()
		for _, n := range []int64{large, large + 1} {
			s.Resize(n)
			s.Settle()
			if got := scene.ValueAt(s.Get(scene.Bars, "default", "web"), "spec.size"); got != n {
				t.Errorf("in a child spec.size is %v, want %d", got, n)
			}
		}
		s.Update(scene.Bars, "default", "web", func(o *unstructured.Unstructured) { // drift
			o.Object["spec"] = map[string]any{"size": int64(large)}
		})
		s.Settle()
		if got := scene.ValueAt(s.Get(scene.Bars, "default", "web"), "spec.size"); got != int64(large+1) {
			t.Errorf("drift of a child by one is left: %v", got)
		}
	})
}

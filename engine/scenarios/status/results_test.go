// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// outcome is a result in a type of an author's.
type outcome struct {
	Size  int64  `json:"size"`
	Color string `json:"color,omitempty"`
}

// TestResultsAreInTheStatus holds that they are in the status under the handler's id, and cost no request of their own.
func TestResultsAreInTheStatus(t *testing.T) {
	operator := func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("a.map", j.Note("a.map", func(_ context.Context, r *dsl.Request) error {
			size := r.Object.Object["spec"].(map[string]any)["size"]
			r.Result(map[string]any{"last": map[string]any{"size": size}})
			r.Result(map[string]any{"last": map[string]any{"color": "red"}, "theirs": nil})
			return nil
		}))
		foo.OnReconcile("typed", dsl.Typed(func(_ context.Context, r *dsl.TypedRequest[struct {
			Spec outcome `json:"spec"`
		}]) error {
			r.Result(r.Object.Spec)
			return nil
		}))
		foo.OnCreate("list", func(_ context.Context, r *dsl.Request) error { r.Result([]int{1, 2}); return nil })
		foo.OnReconcile("none", func(_ context.Context, r *dsl.Request) error { r.Result(nil); return nil })
	}
	scene.PlayAll(t, map[string]scene.Scenario{"a result": {Operator: operator, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Settle()
		s.Wrote("patch foos/status default/web", "patch foos default/web")
		s.Set(map[string]any{"mine": int64(1), "theirs": int64(2)}, "status", "a.map")
		s.Set("x", "status", "none")
		s.Forget()
		s.Resize(2)
		s.Wrote("patch foos/status default/web")
		want := map[string]any{
			"a.map": map[string]any{"mine": int64(1), "last": map[string]any{"size": int64(2), "color": "red"}},
			"typed": map[string]any{"size": int64(2), "color": "red"},
			"list":  []any{int64(1), int64(2)},
			"none":  "x",
		}
		if diff := cmp.Diff(want, s.Web().Object["status"]); diff != "" {
			s.T.Errorf("status (-want +got):\n%s", diff)
		}
		s.Forget()
		s.Process.Restart()
		s.Wrote()
	}}})
}

// TestAResultThatJSONCannotHoldFailsForGood holds that what JSON cannot hold fails the handler for good.
func TestAResultThatJSONCannotHoldFailsForGood(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{"a channel": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.OnReconcile("vain", j.Note("vain", func(_ context.Context, r *dsl.Request) error { r.Result(make(chan int)); return nil }))
	}, Play: func(s *scene.Stage) {
		s.Launch()
		s.Create(scene.Web)
		s.Called("vain create")
		if events := s.Events(); len(events) != 1 || events[0].Reason != "HandlerFailed" {
			s.T.Errorf("events %+v", events)
		}
	}}})
}

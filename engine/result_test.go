// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// outcome is a result in a type of an author's.
type outcome struct {
	Size  int64  `json:"size"`
	Color string `json:"color,omitempty"`
}

// TestResultsOfHandlers holds that they are in the status under the handler's id, and cost no request of their own.
func TestResultsOfHandlers(t *testing.T) {
	operator := func(foo *dsl.Resource, j *journal) {
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
	scenarios(t, map[string]scenario{"a result": {operator, func(s *stage) {
		s.Launch()
		s.Create(web)
		s.Settle()
		s.Wrote("patch foos/status default/web", "patch foos default/web")
		s.set(map[string]any{"mine": int64(1), "theirs": int64(2)}, "status", "a.map")
		s.set("x", "status", "none")
		s.Forget()
		s.size(2)
		s.Wrote("patch foos/status default/web")
		want := map[string]any{
			"a.map": map[string]any{"mine": int64(1), "last": map[string]any{"size": int64(2), "color": "red"}},
			"typed": map[string]any{"size": int64(2), "color": "red"},
			"list":  []any{int64(1), int64(2)},
			"none":  "x",
		}
		if diff := cmp.Diff(want, s.web().Object["status"]); diff != "" {
			s.t.Errorf("status (-want +got):\n%s", diff)
		}
		s.Forget()
		s.Process.Restart()
		s.Wrote()
	}}})
}

// TestAResultThatIsNone holds that what JSON cannot hold fails the handler for good.
func TestAResultThatIsNone(t *testing.T) {
	scenarios(t, map[string]scenario{"a channel": {func(foo *dsl.Resource, j *journal) {
		foo.OnReconcile("vain", j.Note("vain", func(_ context.Context, r *dsl.Request) error { r.Result(make(chan int)); return nil }))
	}, func(s *stage) {
		s.Launch()
		s.Create(web)
		s.Called("vain create")
		if events := s.Events(); len(events) != 1 || events[0].Reason != "HandlerFailed" {
			s.t.Errorf("events %+v", events)
		}
	}}})
}

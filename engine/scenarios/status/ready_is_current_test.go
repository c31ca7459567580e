// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// unlessOff is a filter that a label turns off.
var unlessOff = dsl.When(func(s *dsl.Subject) (bool, error) { return s.Object.GetLabels()["off"] == "", nil })

// TestReadyFollowsFilters holds that the condition says of a changed object what a process that begins again says of it.
func TestReadyFollowsFilters(t *testing.T) {
	tests := map[string]struct {
		handlers      func(foo *dsl.Resource)
		before, after string
	}{
		"the only handler does not see the object any more": {func(foo *dsl.Resource) {
			foo.OnReconcile("seen", scene.Succeeds, unlessOff)
		}, `1 True AllReady ""`, `1 Unknown Filtered "No handler sees the object."`},
		"nor by its labels": {func(foo *dsl.Resource) {
			foo.OnReconcile("seen", scene.Succeeds, dsl.LabelAbsent("off"))
		}, `1 True AllReady ""`, `1 Unknown Filtered "No handler sees the object."`},
		"a handler that fails does not see the object any more": {func(foo *dsl.Resource) {
			foo.OnReconcile("good", scene.Succeeds)
			foo.OnReconcile("bad", scene.Fails(scene.ErrAgain), dsl.WithBackoff(time.Second, time.Second), unlessOff)
		}, `1 False HandlerFailing "Handler bad: not yet"`, `1 True AllReady ""`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.Ready = new(true)
				tt.handlers(foo)
			}, Play: func(s *scene.Stage) {
				s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
				s.Begin()
				s.Advance(time.Minute)
				wantReadyCondition(s, "at first", tt.before)
				s.Set("yes", "metadata", "labels", "off")
				wantReadyCondition(s, "without the handler", tt.after)
				s.Forget()
				s.Process.Restart()
				s.Advance(time.Hour)
				wantReadyCondition(s, "after a restart", tt.after)
				s.Wrote()
			}})
		})
	}
}

// TestReadyWaitsForHandlersOfChanges holds that an object is not ready while a handler that looks at changes alone is not through
// with the last one.
func TestReadyWaitsForHandlersOfChanges(t *testing.T) {
	for want, err := range map[string]error{
		`False Reconciling "Handler changes: it is not through yet"`: scene.ErrAgain,
		`False Waiting "Handler changes: waiting for the queue"`:     dsl.Waiting("the queue", 10*time.Second),
	} {
		var failing atomic.Bool
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Ready = new(true)
			foo.OnReconcile("good", scene.Succeeds)
			foo.On(scene.CreateAndUpdate(), "changes", func(context.Context, *dsl.Request) error {
				if failing.Load() {
					return err
				}
				return nil
			}, dsl.WithBackoff(10*time.Second, 10*time.Second))
		}, Play: func(s *scene.Stage) {
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			failing.Store(true)
			s.Begin()
			wantReadyCondition(s, "at first", "1 "+want)
			failing.Store(false)
			s.Advance(time.Minute)
			wantReadyCondition(s, "in the end", `1 True AllReady ""`)
			failing.Store(true)
			s.Resize(2)
			wantReadyCondition(s, "of another generation", "2 "+want)
			failing.Store(false)
			s.Advance(time.Minute)
			wantReadyCondition(s, "in the end", `2 True AllReady ""`)
		}})
	}
}

// TestReadyOfAnotherControllerStaysDuringAPass holds that the condition of another controller stays, though the reconcile began
// before it was there, or when it was the engine's own.
func TestReadyOfAnotherControllerStaysDuringAPass(t *testing.T) {
	for _, first := range []bool{true, false} {
		var s *scene.Stage
		var sets atomic.Bool
		sets.Store(first)
		scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Ready = new(true)
			foo.OnReconcile("seen", func(context.Context, *dsl.Request) error {
				if sets.CompareAndSwap(true, false) {
					s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
						o.Object["status"] = map[string]any{"conditions": []any{map[string]any{
							"type": "Ready", "status": "Unknown", "reason": "Theirs", "message": "", "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": o.GetGeneration(),
						}}}
					})
				}
				return nil
			})
		}, Play: func(at *scene.Stage) {
			s = at
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			s.Begin()
			s.Settle()
			if !first {
				wantReadyCondition(s, "at first", `1 True AllReady ""`)
				sets.Store(true)
				s.Resize(2)
			}
			s.Advance(time.Minute)
			wantReadyCondition(s, "in the end", map[bool]string{true: `1 Unknown Theirs ""`, false: `2 Unknown Theirs ""`}[first])
		}})
	}
}

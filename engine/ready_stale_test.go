// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// unlessOff is a filter that a label turns off.
var unlessOff = dsl.When(func(s *dsl.Subject) (bool, error) { return s.Object.GetLabels()["off"] == "", nil })

// TestReadyFollowsFilters holds that the condition says of a changed object what a process that begins anew says of it.
func TestReadyFollowsFilters(t *testing.T) {
	tests := map[string]struct {
		handlers      func(foo *dsl.Resource)
		before, after string
	}{
		"the only handler does not see the object any more": {func(foo *dsl.Resource) {
			foo.OnReconcile("seen", succeeds, unlessOff)
		}, `1 True AllReady ""`, `1 Unknown Filtered "No handler sees the object."`},
		"nor by its labels": {func(foo *dsl.Resource) {
			foo.OnReconcile("seen", succeeds, dsl.LabelAbsent("off"))
		}, `1 True AllReady ""`, `1 Unknown Filtered "No handler sees the object."`},
		"a handler that fails does not see the object any more": {func(foo *dsl.Resource) {
			foo.OnReconcile("good", succeeds)
			foo.OnReconcile("bad", fails(errAgain), dsl.WithBackoff(time.Second, time.Second), unlessOff)
		}, `1 False HandlerFailing "Handler bad: not yet"`, `1 True AllReady ""`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
				foo.Ready = new(true)
				tt.handlers(foo)
			}, func(s *stage) {
				s.Update(crdsOf, "", "foos.example.com", addConditions)
				s.begin()
				s.Advance(time.Minute)
				s.ready("at first", tt.before)
				s.set("yes", "metadata", "labels", "off")
				s.ready("without the handler", tt.after)
				s.Forget()
				s.Process.Restart()
				s.Advance(time.Hour)
				s.ready("after a restart", tt.after)
				s.Wrote()
			}})
		})
	}
}

// TestReadyWaitsForHandlersOfChanges holds that an object is not ready while a handler that looks at changes alone is not through
// with the last one.
func TestReadyWaitsForHandlersOfChanges(t *testing.T) {
	for want, err := range map[string]error{
		`False Reconciling "Handler changes: it is not through yet"`: errAgain,
		`False Waiting "Handler changes: waiting for the queue"`:     dsl.Waiting("the queue", 10*time.Second),
	} {
		var failing atomic.Bool
		perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
			foo.Ready = new(true)
			foo.OnReconcile("good", succeeds)
			foo.On(both(), "changes", func(ctx, *dsl.Request) error {
				if failing.Load() {
					return err
				}
				return nil
			}, dsl.WithBackoff(10*time.Second, 10*time.Second))
		}, func(s *stage) {
			s.Update(crdsOf, "", "foos.example.com", addConditions)
			failing.Store(true)
			s.begin()
			s.ready("at first", "1 "+want)
			failing.Store(false)
			s.Advance(time.Minute)
			s.ready("in the end", `1 True AllReady ""`)
			failing.Store(true)
			s.size(2)
			s.ready("of another generation", "2 "+want)
			failing.Store(false)
			s.Advance(time.Minute)
			s.ready("in the end", `2 True AllReady ""`)
		}})
	}
}

// TestReadyThatAnotherOneSetsDuringAPass holds that the condition of another controller stays, though the pass began before it was
// there, or when it was the engine's own.
func TestReadyThatAnotherOneSetsDuringAPass(t *testing.T) {
	for _, first := range []bool{true, false} {
		var s *stage
		var sets atomic.Bool
		sets.Store(first)
		perform(t, scenario{func(foo *dsl.Resource, _ *journal) {
			foo.Ready = new(true)
			foo.OnReconcile("seen", func(ctx, *dsl.Request) error {
				if sets.CompareAndSwap(true, false) {
					s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
						o.Object["status"] = map[string]any{"conditions": []any{map[string]any{
							"type": "Ready", "status": "Unknown", "reason": "Theirs", "message": "", "lastTransitionTime": "2000-01-01T00:00:00Z", "observedGeneration": o.GetGeneration(),
						}}}
					})
				}
				return nil
			})
		}, func(at *stage) {
			s = at
			s.Update(crdsOf, "", "foos.example.com", addConditions)
			s.begin()
			s.Settle()
			if !first {
				s.ready("at first", `1 True AllReady ""`)
				sets.Store(true)
				s.size(2)
			}
			s.Advance(time.Minute)
			s.ready("in the end", map[bool]string{true: `1 Unknown Theirs ""`, false: `2 Unknown Theirs ""`}[first])
		}})
	}
}

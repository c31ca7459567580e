// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAPartialCacheHasConditions holds that the engine keeps up conditions also where the cache holds a part of the object.
func TestAPartialCacheHasConditions(t *testing.T) {
	t.Run("one of a handler that rests is restated", func(t *testing.T) {
		scene.PlayYAML(t, `{resource: foos.v1.example.com, keep: [spec.size], handlers: [
			{id: a, set: {conditions: [{type: Sized, status: "${self.spec.size > 0}"}]}}]}`, func(s *scene.Stage) {
			s.Begin()
			s.Set("blue", "spec", "color")
			if got := s.ConditionStatus("Sized"); got != "True@2" {
				t.Errorf("the condition is %s, want True@2", got)
			}
		})
	})
	t.Run("handlers that fail are named, and others' conditions stay", func(t *testing.T) {
		calls := 0
		scene.PlayWithConditions(t, func(foo *dsl.Resource) {
			foo.Keep = []dsl.Path{{"spec", "size"}}
			foo.OnReconcile("h", func(context.Context, *dsl.Request) error {
				if calls++; calls > 3 {
					return nil
				}
				return dsl.Temporary(scene.ErrAgain, scene.Soon)
			})
		}, func(s *scene.Stage) {
			s.Set([]any{map[string]any{"type": "Theirs", "status": "True"}}, "status", "conditions")
			s.Advance(2*scene.Soon + time.Second)
			s.WantFailureCondition("Operator op: h: not yet")
			s.Advance(time.Minute)
			s.WantFailureCondition("")
			if got := s.ConditionStatus("Theirs"); got == "none" {
				t.Error("the condition of somebody else is gone")
			}
		})
	})
}

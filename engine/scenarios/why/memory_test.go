// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnObjectThatMayNotBeginKeepsNoMemory holds that an object which waits for memory, and whose reconcile then does not begin for another
// reason, keeps the memory from no other object.
func TestAnObjectThatMayNotBeginKeepsNoMemory(t *testing.T) {
	for name, meanwhile := range map[string]func(*scene.Stage){"it is paused": pauseWeb, "it is gone": (*scene.Stage).Remove} {
		t.Run(name, func(t *testing.T) {
			ran := map[string]bool{}
			slow := scene.TakesTime(30 * time.Second)
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, _ *kit.Journal) {
				foo.OnCreate("slow", func(ctx context.Context, r *dsl.Request) error {
					ran[r.Object.GetName()] = true
					return slow(ctx, r)
				})
			}, Play: func(s *scene.Stage) {
				memoryShort(s)
				meanwhile(s)
				s.Advance(time.Minute)
				s.Create(scene.Large("third"))
				s.Advance(time.Minute)
				if !ran["third"] {
					t.Errorf("the handler has run for %v, want for third, too", ran)
				}
			}})
		})
	}
}

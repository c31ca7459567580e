// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnObjectThatIsAboutToLeaveIsNotHandled holds that no handler runs for an object whose namespace has left the scope, while its
// cache still has it: caches of its children may have nothing any more. Should the namespace come back, nothing is lost.
func TestAnObjectThatIsAboutToLeaveIsNotHandled(t *testing.T) {
	stuck := func(play func(s *scene.Stage, release func())) scene.Scenario {
		return labelled(held, func(s *scene.Stage) {
			s.Create(inSpace("a"))
			gate := make(chan struct{})
			s.Process = s.Start(s.Operator, func(e *engine.Settings) { e.Config.Wrap(scene.HoldsReviewsOf("b", gate)) })
			s.Called("sync a resume")
			space(s, "b", "x") // whose rights are asked for, so the feed takes no other step
			s.Settle()
			space(s, "a", "")
			s.Settle()
			s.Update(scene.Foos, "a", "web", scene.SetField(int64(7), "spec", "size"))
			s.Advance(10 * time.Second)
			s.Called()
			play(s, func() { close(gate) })
		})
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"and leaves": stuck(func(s *scene.Stage, release func()) {
			release()
			s.Advance(time.Minute)
			s.Called("left a delete")
			wantFinalizer(s, "a", false)
		}),
		"and stays after all": stuck(func(s *scene.Stage, release func()) {
			space(s, "a", "x")
			s.Settle() // the scope has it before the feed goes on
			release()
			s.Advance(time.Minute)
			s.Called("sync a update")
			wantFinalizer(s, "a", true)
		}),
	})
}

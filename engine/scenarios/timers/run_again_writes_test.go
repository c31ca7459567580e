// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package timers_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAHandlerThatAsksToRunAtOnceForEverAndWritesIsHeldBack holds that one which is slowed down counts as a loop all the same: its
// pace is not one that somebody has chosen.
func TestAHandlerThatAsksToRunAtOnceForEverAndWritesIsHeldBack(t *testing.T) {
	for name, value := range map[string]func(n int64) int64{
		"the same two values": func(n int64) int64 { return n % 2 },
		"a count":             func(n int64) int64 { return n },
	} {
		t.Run(name, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
				n := int64(0)
				foo.OnReconcile("counts", j.Note("counts", func(_ context.Context, r *dsl.Request) error {
					n++
					r.Patch.SetStatus("n", value(n))
					r.RunAgain(0)
					return nil
				}))
			}, Play: func(s *scene.Stage) {
				s.Launch()
				s.Create(scene.Web)
				s.Advance(15 * time.Minute)
				s.Forget()
				s.Advance(15 * time.Minute)
				if n := len(s.Writes()); n == 0 || n > 40 {
					t.Errorf("%d writes in a quarter of an hour, want one or two in a minute", n)
				}
			}})
		})
	}
}

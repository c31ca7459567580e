// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine/operate/status"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAnObjectThatIsGoneCountsNoMore holds that paused objects are counted as paused, and none after its deletion, also where that
// waits for the end of a pause.
func TestAnObjectThatIsGoneCountsNoMore(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		inOps(s)
		s.Begin()
		want := func(when string, ready, paused int) {
			t.Helper()
			a, err := s.Process.Engine().Ask(t.Context(), "status", nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.(*status.Status).Resources[0].Health; got["ready"] != ready || got["paused"] != paused {
				t.Errorf("%s: %v, want %d ready and %d paused", when, got, ready, paused)
			}
		}
		annotate(s, map[string]string{"op.handwerk.dev/paused": "x"})
		want("the object is paused", 0, 1)
		s.Remove()
		s.Settle()
		want("it is deleted", 0, 0)
		s.Create(scene.Web)
		s.Settle()
		want("another one is there", 1, 0)
		pauseOperator(s)
		s.Remove()
		s.Advance(time.Hour)
		want("it is deleted while the operator is paused", 0, 0)
		s.Take()
	}})
}

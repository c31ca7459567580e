// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// pausedBy returns the metric handwerk_paused.
func pausedBy(t *testing.T, metrics *ops.Metrics) map[string]float64 {
	t.Helper()
	return scene.Gauges(t, metrics, "handwerk_paused", "by")
}

// TestAPauseIsLoggedOnce holds that edits of the ConfigMap that change nothing of the pause are no news, however its times are written.
func TestAPauseIsLoggedOnce(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		inOps(s)
		log := scene.LaunchWithLog(s, "operator is paused", ofOps)
		india := time.FixedZone("", 19800)
		pauseOperator(s, "since: "+strconv.Quote(time.Now().In(india).Format(time.RFC3339)), "until: "+strconv.Quote(time.Now().Add(time.Hour).In(india).Format(time.RFC3339)))
		for i := range 3 {
			s.Update(scene.ConfigMaps, scene.OpsNamespace, "op-paused", scene.SetField(strconv.Itoa(i), "metadata", "labels", "n"))
			s.Settle()
		}
		if got := log(); len(got) != 1 {
			t.Errorf("the log has %d lines, want 1: %v", len(got), got)
		}
	}})
}

// TestAPausedOperatorIsSeen holds where it is said that the operator is paused.
func TestAPausedOperatorIsSeen(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		inOps(s)
		metrics := ops.NewMetrics()
		s.Adjust = append(s.Adjust, func(e *engine.Settings) { e.Metrics = metrics })
		s.Launch()
		paused := func(want float64) {
			s.T.Helper()
			if got := pausedBy(s.T, metrics)["operator"]; got != want {
				s.T.Errorf("handwerk_paused is %v, want %v", got, want)
			}
		}
		paused(0)
		pauseOperator(s, "until: "+strconv.Quote(in(time.Hour)))
		paused(1)
		if got := s.Process.Engine().Pauses(); len(got) != 1 || got[0].Who != "alice" || got[0].Reason != "looking" {
			s.T.Errorf("pauses %v", got)
		}
		resumeOperator(s)
		paused(0)
	}})
}

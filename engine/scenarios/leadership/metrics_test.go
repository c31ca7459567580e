// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestEachProcessSaysWhetherItLeads holds that a process which has never led says so: an alert on no leader sees processes
// that all stand by, and not a series that is absent.
func TestEachProcessSaysWhetherItLeads(t *testing.T) {
	for _, mode := range []dsl.LeaderMode{dsl.LeaderNone, dsl.LeaderLease, dsl.LeaderLife} {
		scene.PlayAll(t, map[string]scene.Scenario{
			"in mode " + string(mode): {Operator: scene.Syncs, Play: func(s *scene.Stage) {
				if mode == dsl.LeaderLife {
					s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: op-0}}`)
					s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: op-1}}`)
				}
				for _, leads := range []string{"1", map[bool]string{true: "1", false: "0"}[mode == dsl.LeaderNone]} {
					op, metrics := scene.Replica(&s.Journal, "any", mode), ops.NewMetrics()
					if mode == dsl.LeaderNone {
						op.Settings.LeaderElection.Namespace = ""
					}
					s.Start(op, func(set *engine.Settings) { set.Metrics = metrics })
					s.Advance(time.Second)
					want := `
						# HELP leader_election_master_status Whether this process holds the lock of that name: 1 while it leads, 0 while it stands by.
						# TYPE leader_election_master_status gauge
						leader_election_master_status{name="op-leader"} ` + leads + "\n"
					if err := testutil.GatherAndCompare(metrics.Registry(), strings.NewReader(want), "leader_election_master_status"); err != nil {
						s.T.Error(err)
					}
				}
			}},
		})
	}
}

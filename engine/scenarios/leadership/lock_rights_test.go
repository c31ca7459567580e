// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leadership_test

import (
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// TestAProcessThatMayNotUseTheLockSaysSo holds that /readyz names the missing right instead of another process that leads.
func TestAProcessThatMayNotUseTheLockSaysSo(t *testing.T) {
	for verb, says := range map[string]string{
		"get":    "standing by: reading Lease default/op-leader: ",
		"create": "standing by: writing Lease default/op-leader: ",
	} {
		t.Run(verb, func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
				s.Forbid(verb, scene.Leases)
				s.Process = s.Start(scene.Replica(&s.Journal, "first", dsl.LeaderLease))
				s.Advance(time.Minute)
				scene.WantUnwell(s, says, "cannot "+verb+" resource")
				s.Allow(verb, scene.Leases)
				s.Advance(10 * time.Minute) // rights that are missing are asked for each five minutes at last
				scene.WantWell(s)
			}})
		})
	}
	t.Run("the pod, in mode life", func(t *testing.T) {
		scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
			s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: op-0}}`)
			s.Forbid("get", "pods.v1")
			s.Process = s.Start(scene.Replica(&s.Journal, "first", dsl.LeaderLife))
			s.Advance(time.Minute)
			scene.WantUnwell(s, "standing by: reading our own pod default/op-0: ")
			s.Allow("get", "pods.v1")
			s.Advance(10 * time.Minute) // rights that are missing are asked for each five minutes at last
			scene.WantWell(s)
		}})
	})
}

// TestAProcessThatLostTheLockReportsNoObjects holds that objects which fail are reported by the process that leads alone.
func TestAProcessThatLostTheLockReportsNoObjects(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: scene.Syncs, Play: func(s *scene.Stage) {
		first, _ := scene.StartReplicas(s, dsl.LeaderLease, scene.Fails(dsl.Permanent(scene.ErrAgain)))
		s.Process = first
		s.Create(scene.Web)
		s.Advance(time.Minute)
		if len(scene.NotReadyObjects(s)) == 0 {
			s.T.Error("the leader reports no object that fails")
		}
		first.Sever()
		s.Advance(time.Minute)
		first.Restore()
		s.Advance(time.Minute)
		if calls := s.Of("second", "web"); len(calls) == 0 {
			s.T.Error("the second process does not work")
		}
		if objects := scene.NotReadyObjects(s); len(objects) > 0 {
			s.T.Errorf("a process that does not lead reports %v", objects)
		}
		for _, c := range first.Engine().Ready() {
			if c.State != ops.Pass {
				s.T.Errorf("a process that does not lead says %+v", c)
			}
		}
	}})
}

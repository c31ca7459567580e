// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package upgrades_test

import (
	"strings"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestARenamedOperatorWaitsForItsEarlierName holds that no process works while one leads under an earlier name, and that
// it does not take long when none does.
func TestARenamedOperatorWaitsForItsEarlierName(t *testing.T) {
	renamed := func(s *scene.Stage, mode dsl.LeaderMode) *kit.Process {
		op := scene.Replica(&s.Journal, "new", mode)
		op.Name, op.Was = "new", []string{"op"}
		p := s.Start(op)
		s.Advance(10 * time.Minute)
		s.Called()
		s.Wrote()
		return p
	}
	begun := func(s *scene.Stage, mode dsl.LeaderMode) (first, second *kit.Process) {
		first, second = scene.StartReplicas(s, mode)
		s.Create(scene.Web)
		s.Forget()
		if mode == dsl.LeaderLife {
			s.Create(`{apiVersion: v1, kind: Pod, metadata: {name: new-2}}`)
		}
		return first, second
	}
	// works lets time pass until the renamed operator works, and fails the test unless that takes as long.
	works := func(s *scene.Stage, least, most time.Duration) {
		s.T.Helper()
		from := time.Now()
		for len(s.Of("new", "web")) == 0 && time.Since(from) < time.Hour {
			s.Advance(100 * time.Millisecond)
		}
		if took := time.Since(from); took < least || took > most {
			s.T.Errorf("it took %v", took)
		}
		for _, line := range s.Take() {
			if strings.Contains(line, "create") || strings.Contains(line, "first") || strings.Contains(line, "second") {
				s.T.Errorf("it called %s", line)
			}
		}
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it waits while the leader and its standby run, and begins when both have stopped": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, second := begun(s, dsl.LeaderLease)
			renamed(s, dsl.LeaderLease)
			if err := first.Stop(); err != nil {
				s.T.Error(err)
			}
			s.Advance(time.Minute)
			s.Called("second resume") // the standby of the earlier name was faster
			if err := second.Stop(); err != nil {
				s.T.Error(err)
			}
			works(s, 2*time.Second, 10*time.Second)
		}},
		"it waits for the lease of a leader that died": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, second := begun(s, dsl.LeaderLease)
			second.Kill()
			renamed(s, dsl.LeaderLease)
			first.Kill()
			works(s, 10*time.Second, 30*time.Second)
		}},
		"it begins at once where the lock was released before": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, second := begun(s, dsl.LeaderLease)
			second.Kill()
			if err := first.Stop(); err != nil {
				s.T.Error(err)
			}
			s.Advance(time.Minute)
			op := scene.Replica(&s.Journal, "new", dsl.LeaderLease)
			op.Name, op.Was = "new", []string{"op"}
			s.Start(op)
			works(s, 0, 3*time.Second)
		}},
		"a lock with a name of its own is the same one": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			op := func(name string, was ...string) *dsl.Operator {
				op := scene.Replica(&s.Journal, name, dsl.LeaderLease)
				op.Name, op.Was, op.Settings.LeaderElection.Name = name, was, "lock"
				return op
			}
			first := s.Start(op("old"))
			s.Create(scene.Web)
			s.Called("old create")
			s.Start(op("new", "old"))
			s.Advance(10 * time.Minute)
			s.Called()
			if err := first.Stop(); err != nil {
				s.T.Error(err)
			}
			works(s, 0, 5*time.Second)
		}},
		"in mode life it waits until the leader's pod is gone": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, second := begun(s, dsl.LeaderLife)
			second.Kill()
			renamed(s, dsl.LeaderLife)
			first.Kill()
			s.Advance(10 * time.Minute)
			s.Called()
			s.Delete("pods.v1", "default", "op-0")
			works(s, 0, 10*time.Second)
		}},
		"in mode life a container that is restarted in the leader's pod goes on": {Operator: scene.Syncs, Play: func(s *scene.Stage) {
			first, second := begun(s, dsl.LeaderLife)
			second.Kill()
			first.Kill()
			op := scene.Replica(&s.Journal, "new", dsl.LeaderLife)
			op.Name, op.Was = "new", []string{"op"}
			s.Start(op, func(set *engine.Settings) { set.PodName = "op-0" })
			works(s, 0, 10*time.Second)
		}},
	})
}

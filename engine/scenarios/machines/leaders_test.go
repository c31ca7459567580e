// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// shortly is the machine of job with less time in Running.
func shortly(foo *dsl.Resource, j *kit.Journal) {
	m := job(j)
	m.States[1].Stay.AtMost = time.Minute
	foo.Machine(m)
}

// startTwoLeaders starts two processes of the stage's operator with short leases; the first one leads.
func startTwoLeaders(s *scene.Stage) (first, second *kit.Process) {
	s.T.Helper()
	s.Operator.Settings.LeaderElection = dsl.LeaderElection{
		Mode: dsl.LeaderLease, Namespace: "default", LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 500 * time.Millisecond,
	}
	s.Update("customresourcedefinitions.v1.apiextensions.k8s.io", "", "foos.example.com", scene.AddConditions)
	first = s.Start(s.Operator)
	s.Advance(time.Second)
	second = s.Start(s.Operator)
	s.Advance(time.Second)
	return first, second
}

// TestALeadersCrashLosesNoTransition holds that a leader's end after any write loses no transition, takes none twice, and
// keeps times.
func TestALeadersCrashLosesNoTransition(t *testing.T) {
	for after := 1; after <= 4; after++ {
		t.Run(fmt.Sprintf("after write %d", after), func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: shortly, Play: func(s *scene.Stage) {
				first, second := startTwoLeaders(s)
				s.Create(scene.Web)
				s.WantState("Pending")
				first.CrashAfter(after)
				s.Resize(2)
				s.Advance(5 * time.Second)
				first.Kill()
				s.Advance(5 * time.Second)
				s.WantState("Running")
				since, err := time.Parse(time.RFC3339, fmt.Sprint(scene.ValueAt(s.Web(), "status.stateSince")))
				if err != nil {
					s.T.Fatal(err)
				}
				first.Restart()
				s.Advance(time.Until(since.Add(30 * time.Second)))
				second.Kill() // in the middle of the time
				s.Advance(time.Until(since.Add(time.Minute)))
				s.WantState("Running")
				s.Advance(2 * time.Second)
				s.WantState("Failed")
				want := []string{"Pending Running it is large", "Running Failed it was in state Running for more than 1m0s"}
				if diff := cmp.Diff(want, history(s)); diff != "" {
					s.T.Errorf("history (-want +got):\n%s", diff)
				}
			}})
		})
	}
}

// TestALeaderThatWasCutOffRepeatsNoTransition holds the same of leaders that are cut off time and again, and come back
// without knowing.
func TestALeaderThatWasCutOffRepeatsNoTransition(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: shortly, Play: func(s *scene.Stage) {
		first, second := startTwoLeaders(s)
		s.Create(scene.Web)
		s.WantState("Pending")
		leads, other := first, second
		var want []string
		for range 5 {
			leads.Sever()
			s.Resize(2)
			s.Advance(5 * time.Second)
			leads.Restore()
			s.Advance(time.Second)
			leads, other = other, leads
			s.WantState("Running")
			entered := time.Now()
			leads.Sever()
			s.Advance(30 * time.Second)
			leads.Restore()
			leads, other = other, leads
			s.Advance(20 * time.Second)
			s.WantState("Running")
			s.Advance(12 * time.Second)
			s.WantState("Failed")
			if took := time.Since(entered); took > time.Minute+5*time.Second {
				s.T.Errorf("it took %v", took)
			}
			s.Resize(1)
			requestState(s, "Pending")
			s.WantState("Pending")
			want = append(want, "Pending Running it is large", "Running Failed it was in state Running for more than 1m0s", "Failed Pending a person asked for it")
		}
		if diff := cmp.Diff(want[len(want)-dsl.DefaultHistory:], history(s)); diff != "" {
			s.T.Errorf("history (-want +got):\n%s", diff)
		}
		if n := len(s.Of("start", "web")); n != 5 {
			s.T.Errorf("Running was entered %d times", n)
		}
	}})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// mortalMachine makes each kind of write: a child, the progress, what an action wants of the object, the finalizer, and what takes a
// wish off.
func mortalMachine(foo *dsl.Resource, j *kit.Journal) {
	foo.Owns(scene.Deployments)
	m := job(j)
	m.States[1].Enter = j.Note("start", scene.KeepsDeployment)
	m.States[2].Enter = j.Note("finish", func(_ context.Context, r *dsl.Request) error {
		r.Patch.SetStatus("finished", true)
		r.Patch.Label("finished", "yes")
		return nil
	})
	m.Deletion = []dsl.State{
		{Name: "Draining", Enter: j.Note("drain", func(ctx context.Context, r *dsl.Request) error {
			return r.Children.Delete(ctx, scene.Deployments, r.Object.GetName())
		}), Transitions: []dsl.Transition{{To: "Gone"}}},
		{Name: "Gone", Terminal: true},
	}
	foo.Machine(m)
	foo.Machine(dsl.Machine{Name: "side", States: []dsl.State{{Name: "Off", Transitions: []dsl.Transition{{To: "On", When: scene.SizeOver(2)}}}, {Name: "On", Terminal: true}}})
}

// machineLife is what happens to web.
var machineLife = []func(s *scene.Stage){
	func(s *scene.Stage) { s.Create(scene.Web) },
	func(s *scene.Stage) { s.Resize(2) },
	func(s *scene.Stage) { s.Resize(3) },
	func(s *scene.Stage) { requestState(s, "Pending") }, // refused: it is finished
	func(s *scene.Stage) { s.Remove() },
}

// TestACrashLosesNoTransition holds that a crash after any write loses no transition, takes none twice, and ends where no
// crash ends.
func TestACrashLosesNoTransition(t *testing.T) {
	for at := range machineLife {
		var want string
		scene.Play(t, scene.Scenario{Operator: mortalMachine, Play: func(s *scene.Stage) { want = liveWithCrash(s, at, 0) }})
		for after := 1; after <= 6; after++ {
			t.Run(fmt.Sprintf("in step %d after write %d", at, after), func(t *testing.T) {
				scene.Play(t, scene.Scenario{Operator: mortalMachine, Play: func(s *scene.Stage) {
					if diff := cmp.Diff(want, liveWithCrash(s, at, after)); diff != "" {
						s.T.Errorf("the end (-without a crash +with one):\n%s", diff)
					}
				}})
			})
		}
	}
}

// liveWithCrash lets web live up to a step, which happens to a process that crashes after so many writes, and returns how it ends.
func liveWithCrash(s *scene.Stage, at, after int) string {
	launchWithConditions(s)
	for _, before := range machineLife[:at] {
		before(s)
		s.Advance(time.Minute)
	}
	s.Forget()
	s.Process.CrashAfter(after)
	machineLife[at](s)
	s.Advance(5 * time.Second)
	if after > 0 {
		s.Process.Kill()
		s.Process.Restart()
	}
	s.Advance(time.Minute)
	called := handlersOf(s.Take())
	if s.Web() == nil {
		return fmt.Sprint("gone, after ", called)
	}
	side := s.MachineState("side")
	return fmt.Sprint(s.MachineState(), history(s), side, history(s, "side"), conditionText(s, "Ready"), s.Web().GetLabels(), s.Web().GetAnnotations(), called, s.Get(scene.Deployments, "default", "web") != nil)
}

// handlersOf are the actions that were called, but for what looks all the time.
func handlersOf(lines []string) (out []string) {
	for _, line := range lines {
		var id string
		_, _ = fmt.Sscan(line, &id)
		if id != "watch" {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/handwerk-dev/handwerk/dsl"
)

// mortalMachine makes each kind of write: a child, the book, what an action wants of the object, the finalizer, and what takes a
// wish off.
func mortalMachine(foo *dsl.Resource, j *journal) {
	foo.Owns(deployments)
	m := job(j)
	m.States[1].Enter = j.Note("start", keepsChild)
	m.States[2].Enter = j.Note("finish", func(_ ctx, r *dsl.Request) error {
		r.Patch.SetStatus("finished", true)
		r.Patch.Label("finished", "yes")
		return nil
	})
	m.Deletion = []dsl.State{
		{Name: "Draining", Enter: j.Note("drain", func(ctx context.Context, r *dsl.Request) error {
			return r.Children.Delete(ctx, deployments, r.Object.GetName())
		}), Transitions: []dsl.Transition{{To: "Gone"}}},
		{Name: "Gone", Terminal: true},
	}
	foo.Machine(m)
	foo.Machine(dsl.Machine{Name: "side", States: []dsl.State{{Name: "Off", Transitions: []dsl.Transition{{To: "On", When: sizeOver(2)}}}, {Name: "On", Terminal: true}}})
}

// machineLife is what happens to web.
var machineLife = []func(s *stage){
	func(s *stage) { s.Create(web) },
	func(s *stage) { s.size(2) },
	func(s *stage) { s.size(3) },
	func(s *stage) { s.goes("Pending") }, // refused: it is finished
	func(s *stage) { s.remove() },
}

// TestMachineCrashes holds that a crash after any write loses no transition, takes none twice, and ends where no crash ends.
func TestMachineCrashes(t *testing.T) {
	for at := range machineLife {
		var want string
		perform(t, scenario{mortalMachine, func(s *stage) { want = s.liveInStates(at, 0) }})
		for after := 1; after <= 6; after++ {
			t.Run(fmt.Sprintf("in step %d after write %d", at, after), func(t *testing.T) {
				perform(t, scenario{mortalMachine, func(s *stage) {
					if diff := cmp.Diff(want, s.liveInStates(at, after)); diff != "" {
						s.t.Errorf("the end (-without a crash +with one):\n%s", diff)
					}
				}})
			})
		}
	}
}

// liveInStates lets web live up to a step, which happens to a process that crashes after so many writes, and tells how it ends.
func (s *stage) liveInStates(at, after int) string {
	s.open()
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
	if s.web() == nil {
		return fmt.Sprint("gone, after ", called)
	}
	side := s.in("side")
	return fmt.Sprint(s.in(), s.history(), side, s.history("side"), s.condition("Ready"), s.web().GetLabels(), s.web().GetAnnotations(), called, s.Get(deployments, "default", "web") != nil)
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

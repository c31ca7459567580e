// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

func TestMachine(t *testing.T) {
	scenarios(t, map[string]scenario{
		"an object goes through the states, each entered once": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.is("Pending")
			s.said("Scheduled", "True Pending Waits.")
			s.said("Ready", "False Pending Waits.")
			s.Wrote("patch foos/status default/web")
			s.Called()
			s.size(2)
			s.is("Running")
			s.Called("start again", "watch again")
			s.said("Scheduled", "False Running")
			s.Wrote("patch foos/status default/web", "patch foos/status default/web")
			s.Advance(30 * time.Minute)
			s.Called()
			s.size(3)
			s.is("Finished")
			s.Called("watch update")
			s.said("Ready", "True Finished")
			s.Wrote("patch foos/status default/web")
			want := []string{"Pending Running it is large", "Running Finished it is larger"}
			if diff := cmp.Diff(want, s.history()); diff != "" {
				s.t.Errorf("history (-want +got):\n%s", diff)
			}
			events := []string{"Normal Finished Running → Finished: it is larger", "Normal Running Pending → Running: it is large"}
			if diff := cmp.Diff(events, s.told()); diff != "" {
				s.t.Errorf("Events (-want +got):\n%s", diff)
			}
			s.Advance(24 * time.Hour)
			s.Process.Restart()
			s.Called()
			s.Wrote()
		}},
		"an object that may go on goes through the states with nothing to do in one write": {func(foo *dsl.Resource, j *journal) {
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "A", Transitions: []dsl.Transition{{To: "B"}}}, {Name: "B", Transitions: []dsl.Transition{{To: "C", Why: "so it is"}}}, {Name: "C", Terminal: true},
			}})
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.is("C")
			s.Wrote("patch foos/status default/web")
			if diff := cmp.Diff([]string{"A B ", "B C so it is"}, s.history()); diff != "" {
				s.t.Errorf("history (-want +got):\n%s", diff)
			}
		}},
		"one that was in a state for too long goes where its stay says, also when the process begins anew meanwhile": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Advance(40 * time.Minute)
			s.Process.Kill()
			s.Advance(10 * time.Minute)
			s.Process.Restart()
			s.Advance(10*time.Minute - time.Second)
			s.is("Running")
			s.Advance(2 * time.Second)
			s.is("Failed")
			s.said("Ready", "False Failed")
			if got := s.history(); got[1] != "Running Failed it was in state Running for more than 1h0m0s" {
				s.t.Errorf("history %v", got)
			}
			if got := s.told(); got[0][:7] != "Normal " || !strings.HasPrefix(got[1], "Warning Failed Running → Failed: ") {
				s.t.Errorf("Events %q", got)
			}
		}},
		"a time that passes while no process runs has passed": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Settle()
			s.Process.Kill()
			s.Advance(2 * time.Hour)
			s.Process.Restart()
			s.is("Failed")
		}},
		"an action that fails is tried again, and one time too many takes the object away": {func(foo *dsl.Resource, j *journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", fails(errAgain))
			foo.Machine(m, dsl.WithBackoff(time.Minute, time.Minute))
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Called("start again")
			s.is("Running")
			s.said("Ready", "False EnterFailed enter of state Running: not yet")
			s.Advance(90 * time.Second)
			s.Called("start again 2")
			s.Process.Kill()
			s.Process.Restart()
			s.Called("start resume")
			s.is("Failed")
			if got := s.history(); got[1] != "Running Failed enter failed 3 times: not yet" {
				s.t.Errorf("history %v", got)
			}
			if _, has, _ := unstructured.NestedFieldNoCopy(s.web().Object, "status", "stateFailures"); has {
				s.t.Error("failures of an earlier state are counted still")
			}
		}},
		"a failure that is final uses up the budget, and a panic and an overrun are failures": {func(foo *dsl.Resource, j *journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", func(context.Context, *dsl.Request) error { panic("at the disco") }, func(ctx context.Context, _ *dsl.Request) error {
				<-ctx.Done()
				return ctx.Err()
			}, fails(dsl.Permanent(errAgain)))
			m.States[1].Retries.AtMost = 5
			foo.Machine(m, dsl.Timeout(10*time.Second))
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Called("start again")
			s.said("Ready", "False EnterFailed enter of state Running: panic: at the disco")
			s.Advance(time.Second * 3 / 2)
			s.Called("start again 2")
			s.Advance(10 * time.Second)
			s.said("Ready", "False EnterFailed enter of state Running: the timeout passed (10s): context deadline exceeded")
			s.Advance(time.Minute)
			s.Called("start again 3")
			s.is("Failed")
			if got := s.history(); got[1] != "Running Failed enter failed 3 times: not yet" {
				s.t.Errorf("history %v", got)
			}
		}},
		"the time in a state is over also while its enter fails, or waits": {func(foo *dsl.Resource, j *journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", fails(errAgain), fails(dsl.Waiting("Godot", 24*time.Hour)))
			foo.Machine(m, dsl.WithBackoff(50*time.Minute, 50*time.Minute))
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Called("start again")
			s.Advance(time.Hour)
			s.said("Ready", "False Running waiting for Godot")
			s.Called("start again 2")
			s.Advance(2 * time.Second)
			s.Called("start again 2")
			s.is("Failed")
		}},
		"a person has an object go where a transition leads, and nowhere else": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.goes("Finished")
			s.is("Pending")
			if s.web().GetAnnotations()[gotoKey] != "" {
				s.t.Error("a wish that is refused stays")
			}
			want := `Warning GotoRefused The annotation op.handwerk.dev/goto asks for "Finished", and the object is in state Pending: one can go to Running, Cancelled`
			if got := s.told(); !slices.Contains(got, want) {
				s.t.Errorf("Events %q", got)
			}
			s.goes("Cancelled")
			s.is("Cancelled")
			if diff := cmp.Diff([]string{"Pending Cancelled a person asked for it"}, s.history()); diff != "" {
				s.t.Errorf("history (-want +got):\n%s", diff)
			}
			if s.web().GetAnnotations()[gotoKey] != "" {
				s.t.Error("a wish that is done stays")
			}
			s.goes("Cancelled")
			if len(s.history()) != 1 || s.web().GetAnnotations()[gotoKey] != "" {
				s.t.Errorf("history %v", s.history())
			}
		}},
		"a person takes an object out of a terminal state, into one that is entered once more": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Advance(2 * time.Hour)
			s.Forget()
			s.goes("Pending")
			s.is("Running")
			s.Called("start again", "watch again")
			s.Advance(59 * time.Minute)
			s.is("Running")
		}},
		"a state that somebody has written to the status is where the object is": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.Settle()
			s.set("Running", "status", "state")
			s.Called("start update", "watch update")
			s.is("Running")
		}},
		"an object in a state that nobody knows is held, and says so": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.Settle()
			s.set("Flying", "status", "state")
			s.size(2)
			s.is("Flying")
			const text = `the machine has no state "Flying" for this object: set status.state to one of Pending, Running, Finished, Failed, Cancelled, or say in migrate where such objects go`
			s.said("Ready", "False StateUnknown "+text)
			if got := s.told(); len(got) != 1 || got[0] != "Warning StateUnknown Nothing is done: "+text {
				s.t.Errorf("Events %q", got)
			}
			s.Called()
			s.set("Pending", "status", "state")
			s.is("Running")
		}},
		"the book of another object is none": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Settle()
			copied := s.web()
			s.remove()
			s.Settle()
			s.Forget()
			copied.SetUID("")
			copied.SetResourceVersion("")
			unstructured.RemoveNestedField(copied.Object, "spec", "size")
			s.Load(copied)
			s.is("Pending")
			s.Called()
			if got := s.history(); len(got) > 0 {
				s.t.Errorf("history %v", got)
			}
		}},
		"two machines have books and conditions of their own, and one for both": {func(foo *dsl.Resource, j *journal) {
			foo.Machine(dsl.Machine{Name: "build", States: []dsl.State{{Name: "A", Transitions: []dsl.Transition{{To: "B", When: sizeOver(1)}}}, {Name: "B", Terminal: true}}})
			foo.Machine(dsl.Machine{States: []dsl.State{{Name: "X", Doc: "Not yet.", Transitions: []dsl.Transition{{To: "Y", When: sizeOver(2)}}}, {Name: "Y", Terminal: true}}})
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.is("A", "build")
			s.is("X")
			s.said("Ready", "False A BuildReady is not")
			s.size(2)
			s.is("B", "build")
			s.said("BuildReady", "True B")
			s.said("MachineReady", "False X Not yet.")
			s.said("Ready", "False X MachineReady is not: Not yet.")
			s.size(3)
			s.is("Y")
			s.said("Ready", "True AllReady")
			s.Advance(time.Second)
			s.set("A", "metadata", "annotations", "op.handwerk.dev/build")
			s.Settle()
			if got := s.told(); !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "Warning GotoRefused") }) {
				s.t.Errorf("Events %q", got)
			}
		}},
		"an object is ready when all of its machines have come to that in the same pass": {func(foo *dsl.Resource, j *journal) {
			foo.Machine(dsl.Machine{Name: "build", States: []dsl.State{{Name: "A", Ready: new(true), Transitions: []dsl.Transition{{To: "B", When: sizeOver(2)}}}, {Name: "B", Terminal: true}}})
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "X", Transitions: []dsl.Transition{{To: "Y", When: sizeOver(1)}}},
				{Name: "Y", Ready: new(true), Transitions: []dsl.Transition{{To: "Z", When: sizeOver(2)}}}, {Name: "Z", Terminal: true, Failed: true},
			}})
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.said("BuildReady", "True A")
			s.said("Ready", "False X MachineReady is not")
			s.Wrote("patch foos/status default/web")
			s.size(2)
			s.said("Ready", "True AllReady")
			s.Wrote("patch foos/status default/web")
			s.size(3)
			s.said("BuildReady", "True B")
			s.said("Ready", "False Z MachineReady is not")
			s.Wrote("patch foos/status default/web")
		}},
		"a state that a new version of the machine does not have any more leads to another one": {func(foo *dsl.Resource, j *journal) {
			m := job(j)
			m.Migrate = map[string]string{"Starting": "Running"}
			foo.Machine(m)
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.Settle()
			s.set("Starting", "status", "state")
			s.is("Running")
			s.Called("start again", "watch again")
			if diff := cmp.Diff([]string{"Starting Running the machine has no state Starting any more"}, s.history()); diff != "" {
				s.t.Errorf("history (-want +got):\n%s", diff)
			}
		}},
		"a cycle that never comes to rest is stopped": {func(foo *dsl.Resource, j *journal) {
			foo.Machine(dsl.Machine{AllowCycles: true, History: -1, States: []dsl.State{
				{Name: "A", Transitions: []dsl.Transition{{To: "B"}}}, {Name: "B", Transitions: []dsl.Transition{{To: "A"}}},
			}})
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.Advance(10 * time.Minute)
			if n := len(s.Process.Writes()); n > 40 {
				s.t.Errorf("%d writes", n)
			}
			s.said("Ready", "False Looping the states go round in a circle: after 2 transitions in one go it is in A again")
		}},
		"a cycle with actions that never comes to rest is stopped": {func(foo *dsl.Resource, j *journal) {
			foo.Machine(dsl.Machine{AllowCycles: true, States: []dsl.State{
				{Name: "A", Enter: succeeds, Transitions: []dsl.Transition{{To: "B"}}}, {Name: "B", During: succeeds, Transitions: []dsl.Transition{{To: "A"}}},
			}})
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.Advance(10 * time.Second)
			if n := len(s.Process.Writes()); n < 20 || n > 400 {
				s.t.Errorf("%d writes", n)
			}
		}},
		"where the schema has no place for the book, nothing turns round and round": {oneMachine, func(s *stage) {
			s.Rewrite(foos, func(o *unstructured.Unstructured) {
				for _, field := range []string{"state", "stateSince", "stateEntered", "stateUID", "history"} {
					unstructured.RemoveNestedField(o.Object, "status", field)
				}
			})
			s.open()
			s.Create(web)
			s.size(2)
			s.Advance(10 * time.Second)
			if n := len(s.Process.Writes()); n > 3 {
				s.t.Errorf("%d writes", n)
			}
			if got := s.told(); len(got) > 0 {
				s.t.Errorf("Events %q of what was not written", got)
			}
		}},
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAMachineGoesThroughItsStates holds which states an object goes through by itself.
func TestAMachineGoesThroughItsStates(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object goes through the states, each entered once": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.WantState("Pending")
			wantCondition(s, "Scheduled", "True Pending Waits.")
			wantCondition(s, "Ready", "False Pending Waits.")
			s.Wrote("patch foos/status default/web")
			s.Called()
			s.Resize(2)
			s.WantState("Running")
			s.Called("start again", "watch again")
			wantCondition(s, "Scheduled", "False Running")
			s.Wrote("patch foos/status default/web", "patch foos/status default/web")
			s.Advance(30 * time.Minute)
			s.Called()
			s.Resize(3)
			s.WantState("Finished")
			s.Called("watch update")
			wantCondition(s, "Ready", "True Finished")
			s.Wrote("patch foos/status default/web")
			want := []string{"Pending Running it is large", "Running Finished it is larger"}
			if diff := cmp.Diff(want, history(s)); diff != "" {
				s.T.Errorf("history (-want +got):\n%s", diff)
			}
			events := []string{"Normal Finished Running → Finished: it is larger", "Normal Running Pending → Running: it is large"}
			if diff := cmp.Diff(events, eventTexts(s)); diff != "" {
				s.T.Errorf("Events (-want +got):\n%s", diff)
			}
			s.Advance(24 * time.Hour)
			s.Process.Restart()
			s.Called()
			s.Wrote()
		}},
		"an object that may go on goes through the states with nothing to do in one write": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "A", Transitions: []dsl.Transition{{To: "B"}}}, {Name: "B", Transitions: []dsl.Transition{{To: "C", Why: "so it is"}}}, {Name: "C", Terminal: true},
			}})
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.WantState("C")
			s.Wrote("patch foos/status default/web")
			if diff := cmp.Diff([]string{"A B ", "B C so it is"}, history(s)); diff != "" {
				s.T.Errorf("history (-want +got):\n%s", diff)
			}
		}},
	})
}

// TestTheTimeInAStateIsOver holds that the time that an object may stay in a state is kept, whatever happens.
func TestTheTimeInAStateIsOver(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that was in a state for too long goes where its stay says, also when the process begins again meanwhile": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Advance(40 * time.Minute)
			s.Process.Kill()
			s.Advance(10 * time.Minute)
			s.Process.Restart()
			s.Advance(10*time.Minute - time.Second)
			s.WantState("Running")
			s.Advance(2 * time.Second)
			s.WantState("Failed")
			wantCondition(s, "Ready", "False Failed")
			if got := history(s); got[1] != "Running Failed it was in state Running for more than 1h0m0s" {
				s.T.Errorf("history %v", got)
			}
			if got := eventTexts(s); got[0][:7] != "Normal " || !strings.HasPrefix(got[1], "Warning Failed Running → Failed: ") {
				s.T.Errorf("Events %q", got)
			}
		}},
		"a time that passes while no process runs has passed": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Settle()
			s.Process.Kill()
			s.Advance(2 * time.Hour)
			s.Process.Restart()
			s.WantState("Failed")
		}},
		"the time in a state is over also while its enter fails, or waits": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", scene.Fails(scene.ErrAgain), scene.Fails(dsl.Waiting("Godot", 24*time.Hour)))
			foo.Machine(m, dsl.WithBackoff(50*time.Minute, 50*time.Minute))
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Called("start again")
			s.Advance(time.Hour)
			wantCondition(s, "Ready", "False Running waiting for Godot")
			s.Called("start again 2")
			s.Advance(2 * time.Second)
			s.Called("start again 2")
			s.WantState("Failed")
		}},
	})
}

// TestAFailingActionSpendsTheBudgetOfItsState holds which failures count, and where they lead.
func TestAFailingActionSpendsTheBudgetOfItsState(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"an action that fails is tried again, and one time too many takes the object away": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", scene.Fails(scene.ErrAgain))
			foo.Machine(m, dsl.WithBackoff(time.Minute, time.Minute))
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Called("start again")
			s.WantState("Running")
			wantCondition(s, "Ready", "False EnterFailed enter of state Running: not yet")
			s.Advance(90 * time.Second)
			s.Called("start again 2")
			s.Process.Kill()
			s.Process.Restart()
			s.Called("start resume")
			s.WantState("Failed")
			if got := history(s); got[1] != "Running Failed enter failed 3 times: not yet" {
				s.T.Errorf("history %v", got)
			}
			if _, has, _ := unstructured.NestedFieldNoCopy(s.Web().Object, "status", "stateFailures"); has {
				s.T.Error("failures of an earlier state are counted still")
			}
		}},
		"a failure that is final uses up the budget, and a panic and an overrun are failures": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", func(context.Context, *dsl.Request) error { panic("at the disco") }, func(ctx context.Context, _ *dsl.Request) error {
				<-ctx.Done()
				return ctx.Err()
			}, scene.Fails(dsl.Permanent(scene.ErrAgain)))
			m.States[1].Retries.AtMost = 5
			foo.Machine(m, dsl.Timeout(10*time.Second))
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Called("start again")
			wantCondition(s, "Ready", "False EnterFailed enter of state Running: panic: at the disco")
			s.Advance(time.Second * 3 / 2)
			s.Called("start again 2")
			s.Advance(10 * time.Second)
			wantCondition(s, "Ready", "False EnterFailed enter of state Running: the timeout passed (10s): context deadline exceeded")
			s.Advance(time.Minute)
			s.Called("start again 3")
			s.WantState("Failed")
			if got := history(s); got[1] != "Running Failed enter failed 3 times: not yet" {
				s.T.Errorf("history %v", got)
			}
		}},
	})
}

// TestPeopleMoveAnObject holds what people may do to the state of an object.
func TestPeopleMoveAnObject(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a person has an object go where a transition leads, and nowhere else": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			requestState(s, "Finished")
			s.WantState("Pending")
			if s.Web().GetAnnotations()[gotoKey] != "" {
				s.T.Error("a wish that is refused stays")
			}
			want := `Warning GotoRefused The annotation op.handwerk.dev/goto asks for "Finished", and the object is in state Pending: one can go to Running, Cancelled`
			if got := eventTexts(s); !slices.Contains(got, want) {
				s.T.Errorf("Events %q", got)
			}
			requestState(s, "Cancelled")
			s.WantState("Cancelled")
			if diff := cmp.Diff([]string{"Pending Cancelled a person asked for it"}, history(s)); diff != "" {
				s.T.Errorf("history (-want +got):\n%s", diff)
			}
			if s.Web().GetAnnotations()[gotoKey] != "" {
				s.T.Error("a wish that is done stays")
			}
			requestState(s, "Cancelled")
			if len(history(s)) != 1 || s.Web().GetAnnotations()[gotoKey] != "" {
				s.T.Errorf("history %v", history(s))
			}
		}},
		"a person takes an object out of a terminal state, into one that is entered once more": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Advance(2 * time.Hour)
			s.Forget()
			requestState(s, "Pending")
			s.WantState("Running")
			s.Called("start again", "watch again")
			s.Advance(59 * time.Minute)
			s.WantState("Running")
		}},
		"a state that somebody has written to the status is where the object is": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Settle()
			s.Set("Running", "status", "state")
			s.Called("start update", "watch update")
			s.WantState("Running")
		}},
	})
}

// TestAStateThatIsNotOfTheMachine holds what becomes of an object whose progress is of another machine, version or object.
func TestAStateThatIsNotOfTheMachine(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object in an unknown state is held, and says so": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Settle()
			s.Set("Flying", "status", "state")
			s.Resize(2)
			s.WantState("Flying")
			const text = `the machine has no state "Flying" for this object: set status.state to one of Pending, Running, Finished, Failed, Cancelled, or say in migrate where such objects go`
			wantCondition(s, "Ready", "False StateUnknown "+text)
			if got := eventTexts(s); len(got) != 1 || got[0] != "Warning StateUnknown Nothing is done: "+text {
				s.T.Errorf("Events %q", got)
			}
			s.Called()
			s.Set("Pending", "status", "state")
			s.WantState("Running")
		}},
		"the book of another object is none": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Settle()
			copied := s.Web()
			s.Remove()
			s.Settle()
			s.Forget()
			copied.SetUID("")
			copied.SetResourceVersion("")
			unstructured.RemoveNestedField(copied.Object, "spec", "size")
			s.Load(copied)
			s.WantState("Pending")
			s.Called()
			if got := history(s); len(got) > 0 {
				s.T.Errorf("history %v", got)
			}
		}},
		"a state that a new version of the machine does not have any more leads to another one": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			m := job(j)
			m.Migrate = map[string]string{"Starting": "Running"}
			foo.Machine(m)
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Settle()
			s.Set("Starting", "status", "state")
			s.WantState("Running")
			s.Called("start again", "watch again")
			if diff := cmp.Diff([]string{"Starting Running the machine has no state Starting any more"}, history(s)); diff != "" {
				s.T.Errorf("history (-want +got):\n%s", diff)
			}
		}},
		"where the schema has no place for the book, nothing turns round and round": {Operator: oneMachine, Play: func(s *scene.Stage) {
			s.Rewrite(scene.Foos, func(o *unstructured.Unstructured) {
				for _, field := range []string{"state", "stateSince", "stateEntered", "stateUID", "history"} {
					unstructured.RemoveNestedField(o.Object, "status", field)
				}
			})
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Advance(10 * time.Second)
			if n := len(s.Process.Writes()); n > 3 {
				s.T.Errorf("%d writes", n)
			}
			if got := eventTexts(s); len(got) > 0 {
				s.T.Errorf("Events %q of what was not written", got)
			}
		}},
	})
}

// TestTwoMachinesOfOneObject holds that they have progress and conditions of their own, and one Ready.
func TestTwoMachinesOfOneObject(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"two machines have books and conditions of their own, and one for both": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Machine(dsl.Machine{Name: "build", States: []dsl.State{{Name: "A", Transitions: []dsl.Transition{{To: "B", When: scene.SizeOver(1)}}}, {Name: "B", Terminal: true}}})
			foo.Machine(dsl.Machine{States: []dsl.State{{Name: "X", Doc: "Not yet.", Transitions: []dsl.Transition{{To: "Y", When: scene.SizeOver(2)}}}, {Name: "Y", Terminal: true}}})
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.WantState("A", "build")
			s.WantState("X")
			wantCondition(s, "Ready", "False A BuildReady is not")
			s.Resize(2)
			s.WantState("B", "build")
			wantCondition(s, "BuildReady", "True B")
			wantCondition(s, "MachineReady", "False X Not yet.")
			wantCondition(s, "Ready", "False X MachineReady is not: Not yet.")
			s.Resize(3)
			s.WantState("Y")
			wantCondition(s, "Ready", "True AllReady")
			s.Advance(time.Second)
			s.Set("A", "metadata", "annotations", "op.handwerk.dev/build")
			s.Settle()
			if got := eventTexts(s); !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "Warning GotoRefused") }) {
				s.T.Errorf("Events %q", got)
			}
		}},
		"an object is ready when all of its machines have come to that in the same pass": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Machine(dsl.Machine{Name: "build", States: []dsl.State{{Name: "A", Ready: new(true), Transitions: []dsl.Transition{{To: "B", When: scene.SizeOver(2)}}}, {Name: "B", Terminal: true}}})
			foo.Machine(dsl.Machine{States: []dsl.State{
				{Name: "X", Transitions: []dsl.Transition{{To: "Y", When: scene.SizeOver(1)}}},
				{Name: "Y", Ready: new(true), Transitions: []dsl.Transition{{To: "Z", When: scene.SizeOver(2)}}}, {Name: "Z", Terminal: true, Failed: true},
			}})
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			wantCondition(s, "BuildReady", "True A")
			wantCondition(s, "Ready", "False X MachineReady is not")
			s.Wrote("patch foos/status default/web")
			s.Resize(2)
			wantCondition(s, "Ready", "True AllReady")
			s.Wrote("patch foos/status default/web")
			s.Resize(3)
			wantCondition(s, "BuildReady", "True B")
			wantCondition(s, "Ready", "False Z MachineReady is not")
			s.Wrote("patch foos/status default/web")
		}},
	})
}

// TestACycleThatNeverRestsIsStopped holds that the breaker stops a machine that writes without end.
func TestACycleThatNeverRestsIsStopped(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a cycle that never comes to rest is stopped": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Machine(dsl.Machine{AllowCycles: true, History: -1, States: []dsl.State{
				{Name: "A", Transitions: []dsl.Transition{{To: "B"}}}, {Name: "B", Transitions: []dsl.Transition{{To: "A"}}},
			}})
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Advance(10 * time.Minute)
			if n := len(s.Process.Writes()); n > 40 {
				s.T.Errorf("%d writes", n)
			}
			wantCondition(s, "Ready", "False Looping the states go round in a circle: after 2 transitions in one go it is in A again")
		}},
		"a cycle with actions that never comes to rest is stopped": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Machine(dsl.Machine{AllowCycles: true, States: []dsl.State{
				{Name: "A", Enter: scene.Succeeds, Transitions: []dsl.Transition{{To: "B"}}}, {Name: "B", During: scene.Succeeds, Transitions: []dsl.Transition{{To: "A"}}},
			}})
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Advance(10 * time.Second)
			if n := len(s.Process.Writes()); n < 20 || n > 400 {
				s.T.Errorf("%d writes", n)
			}
		}},
	})
}

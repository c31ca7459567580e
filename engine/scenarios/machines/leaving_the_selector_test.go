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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// withSelector is an operator for the objects alone that have no label other.
func withSelector(operator func(foo *dsl.Resource, j *kit.Journal)) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.LabelSelector = "!other"
		operator(foo, j)
	}
}

// twoMachines is an operator with the machine that most tests have, and another one beside it.
func twoMachines(foo *dsl.Resource, j *kit.Journal) {
	oneMachine(foo, j)
	foo.Machine(dsl.Machine{Name: "traffic", States: []dsl.State{
		{Name: "Open", Transitions: []dsl.Transition{{To: "Closed", When: scene.SizeOver(1)}}}, {Name: "Closed", Terminal: true},
	}})
}

// leaveSelector has web leave the selector, and comeBack has it come back.
func leaveSelector(s *scene.Stage) {
	s.T.Helper()
	s.Set("x", "metadata", "labels", "other")
	s.Settle()
}

func comeBack(s *scene.Stage) {
	s.T.Helper()
	s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	s.Settle()
}

// wantStatusFields checks which fields web's status has beside conditions.
func wantStatusFields(s *scene.Stage, want ...string) {
	s.T.Helper()
	status, _, _ := unstructured.NestedMap(s.Web().Object, "status")
	var got []string
	for key := range status {
		if key != "conditions" {
			got = append(got, key)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		s.T.Errorf("fields of the status (-want +got):\n%s", diff)
	}
}

// comeToRunning creates web, and has its machine come to Running.
func comeToRunning(s *scene.Stage) {
	launchWithConditions(s)
	s.Create(scene.Web)
	s.Settle()
	s.Resize(2)
	s.WantState("Running")
	s.Forget()
}

// wantNewStart has web come back, and checks that its machine begins with the first state.
func wantNewStart(s *scene.Stage) {
	s.T.Helper()
	s.Resize(1)
	s.Forget()
	comeBack(s)
	s.WantState("Pending")
	if got := history(s); len(got) > 0 {
		s.T.Errorf("history %v", got)
	}
	s.Resize(2)
	s.WantState("Running")
	if got := s.Take(); len(got) == 0 || !strings.HasPrefix(got[0], "start ") {
		s.T.Errorf("calls %v, want start first", got)
	}
}

// TestAnObjectThatLeavesTheSelectorIsNewToItsMachineWhenItComesBack is law 7: an object that leaves the operator's selector
// is gone for it, and new when it comes back.
func TestAnObjectThatLeavesTheSelectorIsNewToItsMachineWhenItComesBack(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"without states of deletion its book is taken off with one request, and it begins again": {Operator: withSelector(oneMachine), Play: func(s *scene.Stage) {
			comeToRunning(s)
			leaveSelector(s)
			s.Wrote("patch foos/status default/web")
			wantStatusFields(s)
			wantNewStart(s)
		}},
		"with states of deletion it begins again, too": {Operator: withSelector(leaving(scene.Succeeds)), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(10)
			s.WantState("Done")
			s.Set("yes", "metadata", "labels", "drained")
			s.Forget()
			leaveSelector(s)
			s.Advance(10 * time.Second)
			s.Called("drain delete", "bury delete")
			wantStatusFields(s)
			s.Resize(1)
			s.Forget()
			comeBack(s)
			s.WantState("Running")
			s.Called("start create")
			leaveSelector(s)
			s.Advance(10 * time.Second)
			s.Called("drain delete")
		}},
		"of several machines each begins again": {Operator: withSelector(twoMachines), Play: func(s *scene.Stage) {
			comeToRunning(s)
			s.WantState("Closed", "traffic")
			leaveSelector(s)
			s.Wrote("patch foos/status default/web")
			wantStatusFields(s)
			wantNewStart(s)
			s.WantState("Closed", "traffic")
			if diff := cmp.Diff([]string{"Open Closed "}, history(s, "traffic")); diff != "" {
				s.T.Errorf("history (-want +got):\n%s", diff)
			}
		}},
		"what others have in the status stays": {Operator: withSelector(twoMachines), Play: func(s *scene.Stage) {
			comeToRunning(s)
			s.Set("blue", "status", "color")
			s.Set("tls", "status", "traffic", "kind")
			leaveSelector(s)
			wantStatusFields(s, "color", "traffic")
			if diff := cmp.Diff(map[string]any{"kind": "tls"}, s.Web().Object["status"].(map[string]any)["traffic"]); diff != "" {
				s.T.Errorf("status.traffic (-want +got):\n%s", diff)
			}
		}},
	})
}

// TestAMachinesBookIsTakenOffWhateverHappens is law 7 where writes, processes and schemas do not behave.
func TestAMachinesBookIsTakenOffWhateverHappens(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a restart while it is away changes nothing": {Operator: withSelector(oneMachine), Play: func(s *scene.Stage) {
			comeToRunning(s)
			leaveSelector(s)
			s.Process.Restart()
			wantNewStart(s)
		}},
		"a write that fails is made again": {Operator: withSelector(oneMachine), Play: func(s *scene.Stage) {
			comeToRunning(s)
			s.FailNext("patch", scene.Foos+"/status", apierrors.NewInternalError(scene.ErrAgain), apierrors.NewInternalError(scene.ErrAgain))
			leaveSelector(s)
			s.Advance(time.Minute)
			wantStatusFields(s)
			wantNewStart(s)
		}},
		"one that is back before its book could be taken off has not left": {Operator: withSelector(oneMachine), Play: func(s *scene.Stage) {
			comeToRunning(s)
			end := s.FailWhile("patch", scene.Foos+"/status", apierrors.NewInternalError(scene.ErrAgain))
			leaveSelector(s)
			wantStatusFields(s, "history", "state", "stateEntered", "stateSince", "stateUID")
			end()
			comeBack(s)
			s.Advance(time.Minute)
			if got := s.MachineState(); got != "Running" {
				s.T.Errorf("the state is %s", got)
			}
		}},
		"in a process that began while it was away it goes on, for no process saw it leave": {Operator: withSelector(oneMachine), Play: func(s *scene.Stage) {
			comeToRunning(s)
			s.Process.Kill()
			leaveSelector(s)
			s.Process.Restart()
			comeBack(s)
			s.WantState("Running")
		}},
		"it may leave while it is being worked on": {Operator: withSelector(func(foo *dsl.Resource, j *kit.Journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", func(context.Context, *dsl.Request) error {
				<-time.After(time.Minute)
				return nil
			})
			foo.Machine(m)
		}), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Settle()
			s.Resize(2)
			s.Advance(10 * time.Second)
			s.Set("x", "metadata", "labels", "other")
			s.Advance(5 * time.Minute)
			wantStatusFields(s)
		}},
		"one whose schema requires the book keeps it, and is not held": {Operator: withSelector(leaving(scene.Succeeds)), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Set("yes", "metadata", "labels", "drained")
			s.Settle()
			s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
				if _, has, _ := unstructured.NestedString(o.Object, "status", "state"); !has {
					return apierrors.NewInvalid(o.GroupVersionKind().GroupKind(), o.GetName(), nil)
				}
				return nil
			})
			leaveSelector(s)
			s.Advance(10 * time.Second)
			if f := s.Web().GetFinalizers(); len(f) > 0 {
				s.T.Errorf("finalizers %v", f)
			}
			if got := eventTexts(s); !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "Warning WriteRefused") }) {
				s.T.Errorf("Events %q", got)
			}
		}},
		"of one that is deleted nothing is written": {Operator: withSelector(oneMachine), Play: func(s *scene.Stage) {
			comeToRunning(s)
			s.Remove()
			s.WantGone()
			s.Wrote()
		}},
	})
}

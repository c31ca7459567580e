// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// running is the machine of job with another Enter of Running, and without a budget for it.
func running(enter func(j *kit.Journal) dsl.Func) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		m := job(j)
		m.States[1].Enter, m.States[1].Retries = enter(j), nil
		foo.Machine(m)
	}
}

// launchWithWeb starts the operator with web, which is in its first state.
func launchWithWeb(s *scene.Stage) {
	s.T.Helper()
	launchWithConditions(s)
	s.Create(scene.Web)
	s.Forget()
}

// TestAFinalErrorWithoutABudgetKeepsTheState holds what a failure that is final means where no budget says where to go.
func TestAFinalErrorWithoutABudgetKeepsTheState(t *testing.T) {
	never := running(func(j *kit.Journal) dsl.Func {
		return j.Note("start", scene.Fails(dsl.Permanent(scene.ErrAgain)))
	})
	begins := func(s *scene.Stage) {
		launchWithConditions(s)
		s.Create(scene.Web)
		s.Resize(2)
		s.WantState("Running")
		s.Forget()
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"the time in the state is over still": {Operator: never, Play: func(s *scene.Stage) {
			begins(s)
			s.Advance(time.Hour + 2*time.Second)
			s.WantState("Failed")
		}},
		"a person has it go still": {Operator: never, Play: func(s *scene.Stage) {
			begins(s)
			requestState(s, "Failed")
			s.WantState("Failed")
		}},
		"an object that is deleted is not let go for one, before a bad end": {Operator: leaving(scene.Fails(dsl.Permanent(scene.ErrAgain)), dsl.Release()), Play: func(s *scene.Stage) {
			s.Operator.Resources()[0].Machines()[0].Machine.Deletion[0].Retries = nil
			launchWithWeb(s)
			s.Remove()
			s.WantState("Draining")
			s.Advance(30 * time.Minute)
			s.WantState("Draining")
			s.Advance(31 * time.Minute)
			s.WantGone()
		}},
		"an object that is deleted goes when its time is over": {Operator: leaving(scene.Fails(dsl.Permanent(scene.ErrAgain))), Play: func(s *scene.Stage) {
			s.Operator.Resources()[0].Machines()[0].Machine.Deletion[0].Retries = nil
			launchWithWeb(s)
			s.Remove()
			s.WantState("Draining")
			s.Advance(61 * time.Minute)
			s.WantState("Stuck")
		}},
	})
}

// TestAMachineHoldsUpNothingBesideIt holds what machines do beside the ways that objects go.
func TestAMachineHoldsUpNothingBesideIt(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"a wish on an object that leaves the selector keeps nothing from going on": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector = "!other"
			leaving(scene.Succeeds)(foo, j)
		}, Play: func(s *scene.Stage) {
			launchWithWeb(s)
			s.Set("yes", "metadata", "labels", "drained")
			s.Forget()
			end := s.FailWhile("patch", scene.Foos, apierrors.NewInternalError(scene.ErrAgain))
			requestState(s, "Done")
			s.Set("x", "metadata", "labels", "other")
			s.Settle()
			end()
			s.Advance(20 * time.Second)
			if diff := cmp.Diff([]string{"drain delete", "bury delete"}, s.Take()); diff != "" {
				s.T.Errorf("calls (-want +got):\n%s", diff)
			}
			if f := s.Web().GetFinalizers(); len(f) > 0 {
				s.T.Errorf("finalizers %v", f)
			}
		}},
		"an error as long as a novel is cut": {Operator: running(func(j *kit.Journal) dsl.Func {
			return j.Note("start", scene.Fails(errors.New(strings.Repeat("é", 100_000))))
		}), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Settle()
			if n := len(conditionText(s, "Ready")); n > 1100 || n < 1000 {
				s.T.Errorf("the condition has %d bytes", n)
			}
		}},
		"and so is why it went on": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			m := job(j)
			m.States[1].Enter, m.States[1].Retries = scene.Fails(errors.New(strings.Repeat("é", 100_000))), &dsl.Budget{Then: "Failed"}
			foo.Machine(m)
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.Settle()
			s.WantState("Failed")
			all := history(s)
			if last := all[len(all)-1]; len(last) > 300 || len(last) < 200 || !utf8.ValidString(last) {
				s.T.Errorf("the history has %d bytes: %q", len(last), last)
			}
		}},
		"during asks to be run again before the time in the state is over": {Operator: asks("watch", func(s *dsl.State, asks dsl.Func) { s.During = asks }), Play: wantAskedAgain},
		"enter asks to be run again":                                       {Operator: asks("start", func(s *dsl.State, asks dsl.Func) { s.Enter = asks }), Play: wantAskedAgain},
	})
}

// asks is the machine of job with an action of Running that asks to be run again, which the journal has under a name.
func asks(name string, put func(s *dsl.State, asks dsl.Func)) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		m := job(j)
		again := func(_ context.Context, r *dsl.Request) error { r.RunAgain(10 * time.Minute); return nil }
		put(&m.States[1], j.Note(name, again))
		foo.Machine(m)
	}
}

// wantAskedAgain holds that what Running asks for is done before its time is over.
func wantAskedAgain(s *scene.Stage) {
	launchWithConditions(s)
	s.Create(scene.Web)
	s.Resize(2)
	s.WantState("Running")
	s.Forget()
	s.Advance(11 * time.Minute)
	s.Called("watch again")
}

// TestMachinesOfOneObjectDoNotDisturbEachOther holds that machines of one object do not stand in each other's way.
func TestMachinesOfOneObjectDoNotDisturbEachOther(t *testing.T) {
	two := func(foo *dsl.Resource, j *kit.Journal) {
		foo.Machine(dsl.Machine{Name: "build", States: []dsl.State{
			{Name: "A", Enter: j.Note("a", func(context.Context, *dsl.Request) error { panic("at the disco") }), Transitions: []dsl.Transition{{To: "B"}}, Stay: &dsl.Stay{AtMost: time.Hour, Then: "C"}},
			{Name: "B", Terminal: true}, {Name: "C", Terminal: true, Failed: true},
		}})
		foo.Machine(dsl.Machine{Name: "ship", States: []dsl.State{
			{Name: "X", Stay: &dsl.Stay{AtMost: 30 * time.Minute, Then: "Z"}, Transitions: []dsl.Transition{{To: "Y", When: scene.SizeOver(2)}, {To: "Q", When: scene.SizeOver(100)}}},
			{Name: "Y", Terminal: true}, {Name: "Q", Terminal: true}, {Name: "Z", Terminal: true, Failed: true},
		}})
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that panics keeps no other from its time": {Operator: two, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Advance(31 * time.Minute)
			s.WantState("A", "build")
			s.WantState("Z", "ship")
			s.Advance(31 * time.Minute)
			s.WantState("C", "build")
			wantCondition(s, "Ready", "False C BuildReady is not")
			wantCondition(s, "ShipReady", "False Z")
		}},
		"wishes for both at once are done": {Operator: two, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Settle()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{"op.handwerk.dev/build": "C", "op.handwerk.dev/ship": "Q"})
			})
			s.WantState("C", "build")
			s.WantState("Q", "ship")
			if len(s.Web().GetAnnotations()) > 1 {
				s.T.Errorf("annotations %v", s.Web().GetAnnotations())
			}
		}},
	})
}

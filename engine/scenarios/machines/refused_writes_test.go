// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// tooMuch wants a limit of 600 in spec or in status, and no more than 400 of what is large.
func tooMuch(part string) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error {
		n := int64(600)
		if size, _ := scene.ValueAt(r.Object, "spec.size").(int64); size > 2 {
			n = 400
		}
		if part == "status" {
			r.Patch.SetStatus("limit", n)
		} else {
			r.Patch.Set(part+".limit", n)
		}
		return nil
	}
}

// copiesSize is an action that the server does not mind.
func copiesSize(_ context.Context, r *dsl.Request) error {
	r.Patch.SetStatus("copy", scene.ValueAt(r.Object, "spec.size"))
	return nil
}

// refusing is the machine of job that wants too much when it is in Running.
func refusing(change func(s *dsl.State, j *kit.Journal), options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		m := job(j)
		m.States[1].Retries = nil
		m.States[1].Transitions = []dsl.Transition{{To: "Finished", Why: "it is done"}}
		change(&m.States[1], j)
		foo.Machine(m, append(options, dsl.WithBackoff(time.Minute, time.Minute))...)
	}
}

// refuseByWebhook makes the server refuse, as a webhook does, what limited refuses as a schema does.
func refuseByWebhook(s *scene.Stage) {
	s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
		for _, part := range []string{"spec", "status"} {
			if n, _ := scene.ValueAt(o, part+".limit").(int64); n > 500 {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`admission webhook "limits.example.com" denied the request: it is too much`))
			}
		}
		return nil
	})
}

// TestARefusedWriteFailsItsActionAlone holds that what an action wants, and the server does not take, is a failure of the
// action and of nothing else: the ways that an object has in such a state are open.
func TestARefusedWriteFailsItsActionAlone(t *testing.T) {
	for _, part := range []string{"status", "spec"} {
		enter := func(s *dsl.State, j *kit.Journal) { s.Enter = j.Note("start", tooMuch(part)) }
		during := func(s *dsl.State, j *kit.Journal) {
			s.During, s.Transitions = j.Note("watch", tooMuch(part)), []dsl.Transition{{To: "Finished", When: scene.SizeOver(3)}}
		}
		words := func(action, word string) func(s *scene.Stage) {
			return func(s *scene.Stage) {
				s.Settle()
				got := conditionText(s, "Ready")
				want := "False " + action + " " + word + " of state Running: changing the object: writing "
				if !strings.HasPrefix(got, want) || !strings.Contains(got, "must be at most 500") {
					s.T.Errorf("condition Ready is %q, want %q and the server's words", got, want)
				}
			}
		}
		begins := func(s *scene.Stage) {
			s.RefuseLargeLimits()
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.WantState("Running")
		}
		scene.PlayAll(t, map[string]scene.Scenario{
			part + ": the time in the state is over though Enter is refused": {Operator: refusing(enter), Play: func(s *scene.Stage) {
				begins(s)
				words("EnterFailed", "enter")(s)
				s.Advance(59 * time.Minute)
				s.WantState("Running")
				s.Advance(2 * time.Minute)
				s.WantState("Failed")
				if n := len(s.Of("start", "web")); n < 50 || n > 70 {
					s.T.Errorf("Enter was called %d times", n)
				}
			}},
			part + ": the time in the state is over though During is refused": {Operator: refusing(during), Play: func(s *scene.Stage) {
				begins(s)
				words("DuringFailed", "during")(s)
				s.Advance(61 * time.Minute)
				s.WantState("Failed")
				if n := len(s.Of("start", "web")); n != 1 {
					s.T.Errorf("Enter was called %d times", n)
				}
			}},
			part + ": a transition is taken though During is refused": {Operator: refusing(func(s *dsl.State, j *kit.Journal) {
				during(s, j)
				s.During = j.Note("watch", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("limit", 600)
					return nil
				})
			}), Play: func(s *scene.Stage) {
				begins(s)
				s.Resize(4)
				s.WantState("Finished")
			}},
			part + ": a person has it go though Enter is refused": {Operator: refusing(enter), Play: func(s *scene.Stage) {
				begins(s)
				requestState(s, "Failed")
				s.WantState("Failed")
			}},
			part + ": a refusal counts for the budget": {Operator: refusing(func(s *dsl.State, j *kit.Journal) {
				enter(s, j)
				s.Retries = &dsl.Budget{AtMost: 2, Then: "Failed"}
			}), Play: func(s *scene.Stage) {
				begins(s)
				s.WantField("status.stateFailures", int64(1))
				s.Advance(90 * time.Second)
				s.WantField("status.stateFailures", int64(2))
				s.Advance(time.Minute)
				s.WantState("Failed")
				if n := len(s.Of("start", "web")); n != 3 {
					s.T.Errorf("Enter was called %d times", n)
				}
				if got := history(s); !strings.HasPrefix(got[1], "Running Failed enter failed 3 times: changing the object: ") {
					s.T.Errorf("history %v", got)
				}
			}},
			part + ": Enter succeeds when what it wants is taken": {Operator: refusing(enter), Play: func(s *scene.Stage) {
				begins(s)
				s.Resize(3)
				s.WantState("Finished")
				s.WantField(part+".limit", int64(400))
			}},
			part + ": one of two actions is to blame, and the other is not done again": {Operator: refusing(func(s *dsl.State, j *kit.Journal) {
				s.Enter = j.Note("start", copiesSize)
				during(s, j)
			}), Play: func(s *scene.Stage) {
				begins(s)
				words("DuringFailed", "during")(s)
				s.WantField("status.copy", int64(2))
				if at := scene.ValueAt(s.Web(), "status.stateEntered"); at == nil {
					s.T.Error("that it was entered is not written")
				}
				s.Advance(10 * time.Minute)
				if n := len(s.Of("start", "web")); n != 1 {
					s.T.Errorf("Enter was called %d times", n)
				}
			}},
			part + ": what Enter wants is refused, and what During wants is not": {Operator: refusing(func(s *dsl.State, j *kit.Journal) {
				enter(s, j)
				s.During, s.Transitions = j.Note("watch", copiesSize), []dsl.Transition{{To: "Finished", When: scene.SizeOver(3)}}
			}), Play: func(s *scene.Stage) {
				begins(s)
				words("EnterFailed", "enter")(s)
				s.Advance(61 * time.Minute)
				s.WantState("Failed")
			}},
			part + ": a webhook that denies is a server that refuses": {Operator: refusing(enter), Play: func(s *scene.Stage) {
				refuseByWebhook(s)
				launchWithConditions(s)
				s.Create(scene.Web)
				s.Resize(2)
				s.WantState("Running")
				if got := conditionText(s, "Ready"); !strings.HasSuffix(got, `admission webhook "limits.example.com" denied the request: it is too much`) || !strings.HasPrefix(got, "False EnterFailed ") {
					s.T.Errorf("condition Ready is %q", got)
				}
				s.Advance(61 * time.Minute)
				s.WantState("Failed")
			}},
			part + ": handlers beside the machine go on": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
				foo.On([]dsl.Cause{dsl.Reconcile}, "first", j.Note("first", func(_ context.Context, r *dsl.Request) error {
					r.Patch.SetStatus("size", scene.ValueAt(r.Object, "spec.size"))
					return nil
				}))
				refusing(enter)(foo, j)
				foo.On([]dsl.Cause{dsl.Reconcile}, "last", j.Note("last", copiesSize))
			}, Play: func(s *scene.Stage) {
				begins(s)
				words("EnterFailed", "enter")(s)
				s.WantField("status.size", int64(2))
				s.WantField("status.copy", int64(2))
				s.Forget()
				s.Advance(10 * time.Minute)
				if calls := handlersOf(s.Take()); len(calls) != 1 || calls[0] != "start" {
					s.T.Errorf("calls %v", calls)
				}
				s.Advance(51 * time.Minute)
				s.WantState("Failed")
			}},
		})
	}
}

// TestARefusedWriteFailsItsActionAloneInADeletion holds the same of states of deletion.
func TestARefusedWriteFailsItsActionAloneInADeletion(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"the time in a state is over": {Operator: leaving(tooMuch("status")), Play: func(s *scene.Stage) {
			s.Operator.Resources()[0].Machines()[0].Machine.Deletion[0].Retries = nil
			s.RefuseLargeLimits()
			launchWithWeb(s)
			s.Remove()
			s.WantState("Draining")
			s.Advance(61 * time.Minute)
			s.WantState("Stuck")
		}},
	})
}

// TestAMachineWaitsWhileItsBookIsRefused holds that nothing turns round and round where the server does not take the progress
// itself, and that the machine goes on when it does.
func TestAMachineWaitsWhileItsBookIsRefused(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: oneMachine, Play: func(s *scene.Stage) {
		end := s.Refuse(scene.Foos, func(o *unstructured.Unstructured) error {
			if scene.ValueAt(o, "status.state") == "Running" {
				return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(), nil)
			}
			return nil
		})
		launchWithConditions(s)
		s.Create(scene.Web)
		s.WantState("Pending")
		s.Resize(2)
		s.WantState("Pending")
		s.Called()
		s.Advance(5 * time.Minute)
		if n := len(s.Process.Writes()); n > 20 {
			s.T.Errorf("%d writes", n)
		}
		end()
		s.Advance(10 * time.Minute)
		s.WantState("Running")
	}})
}

// TestAMissingRightFailsNoAction holds that a missing right is no failure of an action.
func TestAMissingRightFailsNoAction(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: refusing(func(s *dsl.State, j *kit.Journal) {
		s.Enter, s.Retries = j.Note("start", copiesSize), &dsl.Budget{Then: "Failed"}
	}), Play: func(s *scene.Stage) {
		launchWithConditions(s)
		s.Create(scene.Web)
		s.Settle()
		s.Forbid("patch", scene.Foos+"/status")
		s.Resize(2)
		s.Advance(5 * time.Minute)
		s.WantState("Pending")
		s.Allow("patch", scene.Foos+"/status")
		s.Advance(5 * time.Minute)
		s.WantState("Finished")
	}})
}

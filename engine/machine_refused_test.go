// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// tooMuch wants a limit of 600 in spec or in status, and no more than 400 of what is large.
func tooMuch(part string) dsl.Func {
	return func(_ ctx, r *dsl.Request) error {
		n := int64(600)
		if size, _ := value(r.Object, "spec.size").(int64); size > 2 {
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
func copiesSize(_ ctx, r *dsl.Request) error {
	r.Patch.SetStatus("copy", value(r.Object, "spec.size"))
	return nil
}

// refusing is the machine of job that wants too much when it is in Running.
func refusing(change func(s *dsl.State, j *journal), options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) {
		m := job(j)
		m.States[1].Retries = nil
		m.States[1].Transitions = []dsl.Transition{{To: "Finished", Why: "it is done"}}
		change(&m.States[1], j)
		foo.Machine(m, append(options, dsl.WithBackoff(time.Minute, time.Minute))...)
	}
}

// denied makes the server refuse, as a webhook does, what limited refuses as a schema does.
func (s *stage) denied() {
	s.Refuse(foos, func(o *unstructured.Unstructured) error {
		for _, part := range []string{"spec", "status"} {
			if n, _ := value(o, part+".limit").(int64); n > 500 {
				return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New(`admission webhook "limits.example.com" denied the request: it is too much`))
			}
		}
		return nil
	})
}

// TestMachineRefused holds that what an action wants, and the server does not take, is a failure of the action and of nothing else:
// the ways that an object has in such a state are open.
func TestMachineRefused(t *testing.T) {
	for _, part := range []string{"status", "spec"} {
		enter := func(s *dsl.State, j *journal) { s.Enter = j.Note("start", tooMuch(part)) }
		during := func(s *dsl.State, j *journal) {
			s.During, s.Transitions = j.Note("watch", tooMuch(part)), []dsl.Transition{{To: "Finished", When: sizeOver(3)}}
		}
		words := func(action, word string) func(s *stage) {
			return func(s *stage) {
				s.Settle()
				got := s.condition("Ready")
				want := "False " + action + " " + word + " of state Running: changing the object: writing "
				if !strings.HasPrefix(got, want) || !strings.Contains(got, "must be at most 500") {
					s.t.Errorf("condition Ready is %q, want %q and the server's words", got, want)
				}
			}
		}
		begins := func(s *stage) {
			s.limited()
			s.open()
			s.Create(web)
			s.size(2)
			s.is("Running")
		}
		scenarios(t, map[string]scenario{
			part + ": the time in the state is over though Enter is refused": {refusing(enter), func(s *stage) {
				begins(s)
				words("EnterFailed", "enter")(s)
				s.Advance(59 * time.Minute)
				s.is("Running")
				s.Advance(2 * time.Minute)
				s.is("Failed")
				if n := len(s.Of("start", "web")); n < 50 || n > 70 {
					s.t.Errorf("Enter was called %d times", n)
				}
			}},
			part + ": the time in the state is over though During is refused": {refusing(during), func(s *stage) {
				begins(s)
				words("DuringFailed", "during")(s)
				s.Advance(61 * time.Minute)
				s.is("Failed")
				if n := len(s.Of("start", "web")); n != 1 {
					s.t.Errorf("Enter was called %d times", n)
				}
			}},
			part + ": a transition is taken though During is refused": {refusing(func(s *dsl.State, j *journal) {
				during(s, j)
				s.During = j.Note("watch", func(_ ctx, r *dsl.Request) error {
					r.Patch.SetStatus("limit", 600)
					return nil
				})
			}), func(s *stage) {
				begins(s)
				s.size(4)
				s.is("Finished")
			}},
			part + ": a person has it go though Enter is refused": {refusing(enter), func(s *stage) {
				begins(s)
				s.goes("Failed")
				s.is("Failed")
			}},
			part + ": a refusal counts for the budget": {refusing(func(s *dsl.State, j *journal) {
				enter(s, j)
				s.Retries = &dsl.Budget{AtMost: 2, Then: "Failed"}
			}), func(s *stage) {
				begins(s)
				s.at("status.stateFailures", int64(1))
				s.Advance(90 * time.Second)
				s.at("status.stateFailures", int64(2))
				s.Advance(time.Minute)
				s.is("Failed")
				if n := len(s.Of("start", "web")); n != 3 {
					s.t.Errorf("Enter was called %d times", n)
				}
				if got := s.history(); !strings.HasPrefix(got[1], "Running Failed enter failed 3 times: changing the object: ") {
					s.t.Errorf("history %v", got)
				}
			}},
			part + ": Enter succeeds when what it wants is taken": {refusing(enter), func(s *stage) {
				begins(s)
				s.size(3)
				s.is("Finished")
				s.at(part+".limit", int64(400))
			}},
			part + ": one of two actions is to blame, and the other is not done again": {refusing(func(s *dsl.State, j *journal) {
				s.Enter = j.Note("start", copiesSize)
				during(s, j)
			}), func(s *stage) {
				begins(s)
				words("DuringFailed", "during")(s)
				s.at("status.copy", int64(2))
				if at := value(s.web(), "status.stateEntered"); at == nil {
					s.t.Error("that it was entered is not written")
				}
				s.Advance(10 * time.Minute)
				if n := len(s.Of("start", "web")); n != 1 {
					s.t.Errorf("Enter was called %d times", n)
				}
			}},
			part + ": what Enter wants is refused, and what During wants is not": {refusing(func(s *dsl.State, j *journal) {
				enter(s, j)
				s.During, s.Transitions = j.Note("watch", copiesSize), []dsl.Transition{{To: "Finished", When: sizeOver(3)}}
			}), func(s *stage) {
				begins(s)
				words("EnterFailed", "enter")(s)
				s.Advance(61 * time.Minute)
				s.is("Failed")
			}},
			part + ": a webhook that denies is a server that refuses": {refusing(enter), func(s *stage) {
				s.denied()
				s.open()
				s.Create(web)
				s.size(2)
				s.is("Running")
				if got := s.condition("Ready"); !strings.HasSuffix(got, `admission webhook "limits.example.com" denied the request: it is too much`) || !strings.HasPrefix(got, "False EnterFailed ") {
					s.t.Errorf("condition Ready is %q", got)
				}
				s.Advance(61 * time.Minute)
				s.is("Failed")
			}},
			part + ": handlers beside the machine go on": {func(foo *dsl.Resource, j *journal) {
				foo.On([]dsl.Cause{dsl.Reconcile}, "first", j.Note("first", func(_ ctx, r *dsl.Request) error { r.Patch.SetStatus("size", value(r.Object, "spec.size")); return nil }))
				refusing(enter)(foo, j)
				foo.On([]dsl.Cause{dsl.Reconcile}, "last", j.Note("last", copiesSize))
			}, func(s *stage) {
				begins(s)
				words("EnterFailed", "enter")(s)
				s.at("status.size", int64(2))
				s.at("status.copy", int64(2))
				s.Forget()
				s.Advance(10 * time.Minute)
				if calls := handlersOf(s.Take()); len(calls) != 1 || calls[0] != "start" {
					s.t.Errorf("calls %v", calls)
				}
				s.Advance(51 * time.Minute)
				s.is("Failed")
			}},
		})
	}
}

// TestMachineRefusedAtDeletion holds the same of states of deletion.
func TestMachineRefusedAtDeletion(t *testing.T) {
	scenarios(t, map[string]scenario{
		"the time in a state is over": {leaving(tooMuch("status")), func(s *stage) {
			s.Operator.Resources()[0].Machines()[0].Machine.Deletion[0].Retries = nil
			s.limited()
			s.openWeb()
			s.remove()
			s.is("Draining")
			s.Advance(61 * time.Minute)
			s.is("Stuck")
		}},
	})
}

// TestMachineBookRefused holds that nothing turns round and round where the server does not take the book itself, and that the machine
// goes on when it does.
func TestMachineBookRefused(t *testing.T) {
	perform(t, scenario{oneMachine, func(s *stage) {
		end := s.Refuse(foos, func(o *unstructured.Unstructured) error {
			if value(o, "status.state") == "Running" {
				return apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Foo"}, o.GetName(), nil)
			}
			return nil
		})
		s.open()
		s.Create(web)
		s.is("Pending")
		s.size(2)
		s.is("Pending")
		s.Called()
		s.Advance(5 * time.Minute)
		if n := len(s.Process.Writes()); n > 20 {
			s.t.Errorf("%d writes", n)
		}
		end()
		s.Advance(10 * time.Minute)
		s.is("Running")
	}})
}

// TestMachineForbidden holds that a missing right is nobody's failure.
func TestMachineForbidden(t *testing.T) {
	perform(t, scenario{refusing(func(s *dsl.State, j *journal) {
		s.Enter, s.Retries = j.Note("start", copiesSize), &dsl.Budget{Then: "Failed"}
	}), func(s *stage) {
		s.open()
		s.Create(web)
		s.Settle()
		s.Forbid("patch", foos+"/status")
		s.size(2)
		s.Advance(5 * time.Minute)
		s.is("Pending")
		s.Allow("patch", foos+"/status")
		s.Advance(5 * time.Minute)
		s.is("Finished")
	}})
}

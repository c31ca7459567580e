// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

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
)

// running is the machine of job with another Enter of Running, and without a budget for it.
func running(enter func(j *journal) dsl.Func) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) {
		m := job(j)
		m.States[1].Enter, m.States[1].Retries = enter(j), nil
		foo.Machine(m)
	}
}

// openWeb starts the operator with web, which is in its first state.
func (s *stage) openWeb() {
	s.t.Helper()
	s.open()
	s.Create(web)
	s.Forget()
}

// TestMachineFinalErrors holds what a failure that is final means where no budget says where to go.
func TestMachineFinalErrors(t *testing.T) {
	never := running(func(j *journal) dsl.Func { return j.Note("start", fails(dsl.Permanent(errAgain))) })
	begins := func(s *stage) {
		s.open()
		s.Create(web)
		s.size(2)
		s.is("Running")
		s.Forget()
	}
	scenarios(t, map[string]scenario{
		"the time in the state is over still": {never, func(s *stage) {
			begins(s)
			s.Advance(time.Hour + 2*time.Second)
			s.is("Failed")
		}},
		"a person has it go still": {never, func(s *stage) {
			begins(s)
			s.goes("Failed")
			s.is("Failed")
		}},
		"an object that is deleted is not let go for one, before a bad end": {leaving(fails(dsl.Permanent(errAgain)), dsl.Release()), func(s *stage) {
			s.Operator.Resources()[0].Machines()[0].Machine.Deletion[0].Retries = nil
			s.openWeb()
			s.remove()
			s.is("Draining")
			s.Advance(30 * time.Minute)
			s.is("Draining")
			s.Advance(31 * time.Minute)
			s.gone()
		}},
		"an object that is deleted goes when its time is over": {leaving(fails(dsl.Permanent(errAgain))), func(s *stage) {
			s.Operator.Resources()[0].Machines()[0].Machine.Deletion[0].Retries = nil
			s.openWeb()
			s.remove()
			s.is("Draining")
			s.Advance(61 * time.Minute)
			s.is("Stuck")
		}},
	})
}

// TestMachineAside holds what machines do beside the ways that objects go.
func TestMachineAside(t *testing.T) {
	scenarios(t, map[string]scenario{
		"a wish on an object that leaves the selector keeps nothing from going on": {func(foo *dsl.Resource, j *journal) {
			foo.LabelSelector = "!other"
			leaving(succeeds)(foo, j)
		}, func(s *stage) {
			s.openWeb()
			s.set("yes", "metadata", "labels", "drained")
			s.Forget()
			end := s.FailWhile("patch", foos, apierrors.NewInternalError(errAgain))
			s.goes("Done")
			s.set("x", "metadata", "labels", "other")
			s.Settle()
			end()
			s.Advance(20 * time.Second)
			if diff := cmp.Diff([]string{"drain delete", "bury delete"}, s.Take()); diff != "" {
				s.t.Errorf("calls (-want +got):\n%s", diff)
			}
			if f := s.web().GetFinalizers(); len(f) > 0 {
				s.t.Errorf("finalizers %v", f)
			}
		}},
		"an error as long as a novel is cut": {running(func(j *journal) dsl.Func {
			return j.Note("start", fails(errors.New(strings.Repeat("é", 100_000))))
		}), func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Settle()
			if n := len(s.condition("Ready")); n > 1100 || n < 1000 {
				s.t.Errorf("the condition has %d bytes", n)
			}
		}},
		"and so is why it went on": {func(foo *dsl.Resource, j *journal) {
			m := job(j)
			m.States[1].Enter, m.States[1].Retries = fails(errors.New(strings.Repeat("é", 100_000))), &dsl.Budget{Then: "Failed"}
			foo.Machine(m)
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.Settle()
			s.is("Failed")
			all := s.history()
			if last := all[len(all)-1]; len(last) > 300 || len(last) < 200 || !utf8.ValidString(last) {
				s.t.Errorf("the history has %d bytes: %q", len(last), last)
			}
		}},
		"during asks to be run again before the time in the state is over": {asks("watch", func(s *dsl.State, asks dsl.Func) { s.During = asks }), askedAgain},
		"enter asks to be run again":                                       {asks("start", func(s *dsl.State, asks dsl.Func) { s.Enter = asks }), askedAgain},
	})
}

// asks is the machine of job with an action of Running that asks to be run again, which the journal has under a name.
func asks(name string, put func(s *dsl.State, asks dsl.Func)) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) {
		m := job(j)
		again := func(_ ctx, r *dsl.Request) error { r.RunAgain(10 * time.Minute); return nil }
		put(&m.States[1], j.Note(name, again))
		foo.Machine(m)
	}
}

// askedAgain holds that what Running asks for is done before its time is over.
func askedAgain(s *stage) {
	s.open()
	s.Create(web)
	s.size(2)
	s.is("Running")
	s.Forget()
	s.Advance(11 * time.Minute)
	s.Called("watch again")
}

// TestMachinesShare holds that machines of one object do not stand in each other's way.
func TestMachinesShare(t *testing.T) {
	two := func(foo *dsl.Resource, j *journal) {
		foo.Machine(dsl.Machine{Name: "build", States: []dsl.State{
			{Name: "A", Enter: j.Note("a", func(context.Context, *dsl.Request) error { panic("at the disco") }), Transitions: []dsl.Transition{{To: "B"}}, Stay: &dsl.Stay{AtMost: time.Hour, Then: "C"}},
			{Name: "B", Terminal: true}, {Name: "C", Terminal: true, Failed: true},
		}})
		foo.Machine(dsl.Machine{Name: "ship", States: []dsl.State{
			{Name: "X", Stay: &dsl.Stay{AtMost: 30 * time.Minute, Then: "Z"}, Transitions: []dsl.Transition{{To: "Y", When: sizeOver(2)}, {To: "Q", When: sizeOver(100)}}},
			{Name: "Y", Terminal: true}, {Name: "Q", Terminal: true}, {Name: "Z", Terminal: true, Failed: true},
		}})
	}
	scenarios(t, map[string]scenario{
		"one that panics keeps no other from its time": {two, func(s *stage) {
			s.open()
			s.Create(web)
			s.Advance(31 * time.Minute)
			s.is("A", "build")
			s.is("Z", "ship")
			s.Advance(31 * time.Minute)
			s.is("C", "build")
			s.said("Ready", "False C BuildReady is not")
			s.said("ShipReady", "False Z")
		}},
		"wishes for both at once are done": {two, func(s *stage) {
			s.open()
			s.Create(web)
			s.Settle()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
				o.SetAnnotations(map[string]string{"op.handwerk.dev/build": "C", "op.handwerk.dev/ship": "Q"})
			})
			s.is("C", "build")
			s.is("Q", "ship")
			if len(s.web().GetAnnotations()) > 1 {
				s.t.Errorf("annotations %v", s.web().GetAnnotations())
			}
		}},
	})
}

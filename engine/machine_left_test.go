// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// chosen is an operator for the objects alone that have no label other.
func chosen(operator func(foo *dsl.Resource, j *journal)) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) {
		foo.LabelSelector = "!other"
		operator(foo, j)
	}
}

// twoMachines is an operator with the machine that most tests have, and another one beside it.
func twoMachines(foo *dsl.Resource, j *journal) {
	oneMachine(foo, j)
	foo.Machine(dsl.Machine{Name: "traffic", States: []dsl.State{
		{Name: "Open", Transitions: []dsl.Transition{{To: "Closed", When: sizeOver(1)}}}, {Name: "Closed", Terminal: true},
	}})
}

// leaves has web leave the selector, and comesBack has it come back.
func (s *stage) leaves() {
	s.t.Helper()
	s.set("x", "metadata", "labels", "other")
	s.Settle()
}

func (s *stage) comesBack() {
	s.t.Helper()
	s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	s.Settle()
}

// statusHas checks which fields web's status has beside conditions.
func (s *stage) statusHas(want ...string) {
	s.t.Helper()
	status, _, _ := unstructured.NestedMap(s.web().Object, "status")
	var got []string
	for key := range status {
		if key != "conditions" {
			got = append(got, key)
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("fields of the status (-want +got):\n%s", diff)
	}
}

// TestMachineOfWhatLeaves is law 7: an object that leaves the operator's selector is gone for it, and new when it comes back.
func TestMachineOfWhatLeaves(t *testing.T) {
	runs := func(s *stage) {
		s.open()
		s.Create(web)
		s.Settle()
		s.size(2)
		s.is("Running")
		s.Forget()
	}
	begins := func(s *stage) {
		s.t.Helper()
		s.size(1)
		s.Forget()
		s.comesBack()
		s.is("Pending")
		if got := s.history(); len(got) > 0 {
			s.t.Errorf("history %v", got)
		}
		s.size(2)
		s.is("Running")
		if got := s.Take(); len(got) == 0 || !strings.HasPrefix(got[0], "start ") {
			s.t.Errorf("calls %v, want start first", got)
		}
	}
	scenarios(t, map[string]scenario{
		"without states of deletion its book is taken off with one request, and it begins anew": {chosen(oneMachine), func(s *stage) {
			runs(s)
			s.leaves()
			s.Wrote("patch foos/status default/web")
			s.statusHas()
			begins(s)
		}},
		"with states of deletion it begins anew, too": {chosen(leaving(succeeds)), func(s *stage) {
			s.open()
			s.Create(web)
			s.size(10)
			s.is("Done")
			s.set("yes", "metadata", "labels", "drained")
			s.Forget()
			s.leaves()
			s.Advance(10 * time.Second)
			s.Called("drain delete", "bury delete")
			s.statusHas()
			s.size(1)
			s.Forget()
			s.comesBack()
			s.is("Running")
			s.Called("start create")
			s.leaves()
			s.Advance(10 * time.Second)
			s.Called("drain delete")
		}},
		"of several machines each begins anew": {chosen(twoMachines), func(s *stage) {
			runs(s)
			s.is("Closed", "traffic")
			s.leaves()
			s.Wrote("patch foos/status default/web")
			s.statusHas()
			begins(s)
			s.is("Closed", "traffic")
			if diff := cmp.Diff([]string{"Open Closed "}, s.history("traffic")); diff != "" {
				s.t.Errorf("history (-want +got):\n%s", diff)
			}
		}},
		"what others have in the status stays": {chosen(twoMachines), func(s *stage) {
			runs(s)
			s.set("blue", "status", "color")
			s.set("tls", "status", "traffic", "kind")
			s.leaves()
			s.statusHas("color", "traffic")
			if diff := cmp.Diff(map[string]any{"kind": "tls"}, s.web().Object["status"].(map[string]any)["traffic"]); diff != "" {
				s.t.Errorf("status.traffic (-want +got):\n%s", diff)
			}
		}},
		"a restart while it is away changes nothing": {chosen(oneMachine), func(s *stage) {
			runs(s)
			s.leaves()
			s.Process.Restart()
			begins(s)
		}},
		"a write that fails is made again": {chosen(oneMachine), func(s *stage) {
			runs(s)
			s.FailNext("patch", foos+"/status", apierrors.NewInternalError(errAgain), apierrors.NewInternalError(errAgain))
			s.leaves()
			s.Advance(time.Minute)
			s.statusHas()
			begins(s)
		}},
		"one that is back before its book could be taken off has not left": {chosen(oneMachine), func(s *stage) {
			runs(s)
			end := s.FailWhile("patch", foos+"/status", apierrors.NewInternalError(errAgain))
			s.leaves()
			s.statusHas("history", "state", "stateEntered", "stateSince", "stateUID")
			end()
			s.comesBack()
			s.Advance(time.Minute)
			if got := s.in(); got != "Running" {
				s.t.Errorf("the state is %s", got)
			}
		}},
		"in a process that began while it was away it goes on, for nobody saw it leave": {chosen(oneMachine), func(s *stage) {
			runs(s)
			s.Process.Kill()
			s.leaves()
			s.Process.Restart()
			s.comesBack()
			s.is("Running")
		}},
		"it may leave while it is being worked on": {chosen(func(foo *dsl.Resource, j *journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", func(ctx, *dsl.Request) error {
				<-time.After(time.Minute)
				return nil
			})
			foo.Machine(m)
		}), func(s *stage) {
			s.open()
			s.Create(web)
			s.Settle()
			s.size(2)
			s.Advance(10 * time.Second)
			s.set("x", "metadata", "labels", "other")
			s.Advance(5 * time.Minute)
			s.statusHas()
		}},
		"one whose schema requires the book keeps it, and is not held": {chosen(leaving(succeeds)), func(s *stage) {
			s.open()
			s.Create(web)
			s.set("yes", "metadata", "labels", "drained")
			s.Settle()
			s.Refuse(foos, func(o *unstructured.Unstructured) error {
				if _, has, _ := unstructured.NestedString(o.Object, "status", "state"); !has {
					return apierrors.NewInvalid(o.GroupVersionKind().GroupKind(), o.GetName(), nil)
				}
				return nil
			})
			s.leaves()
			s.Advance(10 * time.Second)
			if f := s.web().GetFinalizers(); len(f) > 0 {
				s.t.Errorf("finalizers %v", f)
			}
			if got := s.told(); !slices.ContainsFunc(got, func(e string) bool { return strings.HasPrefix(e, "Warning WriteRefused") }) {
				s.t.Errorf("Events %q", got)
			}
		}},
		"of one that is deleted nothing is written": {chosen(oneMachine), func(s *stage) {
			runs(s)
			s.remove()
			s.gone()
			s.Wrote()
		}},
	})
}

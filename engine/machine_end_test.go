// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// leaving is a machine that sees objects off in states: it drains them, and waits until the drained thing is gone.
func leaving(drain dsl.Func, options ...dsl.Option) func(foo *dsl.Resource, j *journal) {
	return func(foo *dsl.Resource, j *journal) {
		foo.Machine(dsl.Machine{
			States: []dsl.State{{Name: "Running", Enter: j.Note("start"), Transitions: []dsl.Transition{{To: "Done", When: sizeOver(9)}}}, {Name: "Done", Terminal: true}},
			Deletion: []dsl.State{
				{
					Name: "Draining", Enter: j.Note("drain", drain), Stay: &dsl.Stay{AtMost: time.Hour, Then: "Stuck"}, Retries: &dsl.Budget{AtMost: 1, Then: "Stuck"},
					Transitions: []dsl.Transition{{To: "Gone", When: func(s *dsl.Subject) (bool, error) { return s.Object.GetLabels()["drained"] == "yes", nil }, Why: "it is drained"}},
				},
				{Name: "Gone", Terminal: true, Enter: j.Note("bury")},
				{Name: "Stuck", Terminal: true, Failed: true, Transitions: []dsl.Transition{{To: "Gone", Manual: true}}},
			},
		}, options...)
	}
}

// TestMachineOfDeletion holds what becomes of objects that are deleted.
func TestMachineOfDeletion(t *testing.T) {
	scenarios(t, map[string]scenario{
		"an object is held until it has gone through the states of deletion": {leaving(succeeds), func(s *stage) {
			s.open()
			s.Create(web)
			s.Called("start create")
			s.remove()
			s.is("Draining")
			s.Called("drain delete")
			s.said("Ready", "False Draining")
			s.Advance(30 * time.Minute)
			s.is("Draining")
			s.Called()
			s.Process.Restart()
			s.is("Draining")
			s.Called()
			s.set("yes", "metadata", "labels", "drained")
			s.Settle()
			s.Called("bury delete")
			s.gone()
			if got := s.told(); !slices.Contains(got, "Normal Gone Draining → Gone: it is drained") {
				s.t.Errorf("Events %q", got)
			}
		}},
		"one that comes to a bad end is held, says so, and is let go by a person": {leaving(fails(errAgain)), func(s *stage) {
			s.open()
			s.Create(web)
			s.Forget()
			s.remove()
			s.Advance(10 * time.Second)
			s.is("Stuck")
			s.Called("drain delete", "drain delete 2")
			want := []string{ // the last two are of one moment
				"Normal Draining Running → Draining: the object is being deleted",
				"Warning DeletionHeld Deletion is held: handler machine failed for good after 2 attempts: ending in state Stuck",
				"Warning Stuck Draining → Stuck: enter failed 2 times: not yet",
			}
			if diff := cmp.Diff(want, s.told()); diff != "" {
				s.t.Errorf("Events (-want +got):\n%s", diff)
			}
			s.Advance(24 * time.Hour)
			s.is("Stuck")
			s.Called()
			s.goes("Gone")
			s.Called("bury delete")
			s.gone()
		}},
		"one that may go comes to a bad end and goes": {leaving(fails(dsl.Permanent(errAgain)), dsl.Release()), func(s *stage) {
			s.open()
			s.Create(web)
			s.Forget()
			s.remove()
			s.Called("drain delete")
			s.gone()
		}},
		"the time in a state of deletion is over also while its enter waits": {leaving(fails(dsl.Waiting("Godot", 24*time.Hour))), func(s *stage) {
			s.open()
			s.Create(web)
			s.Forget()
			s.remove()
			s.Advance(50 * time.Minute)
			s.is("Draining")
			s.Process.Kill()
			s.Process.Restart()
			s.Advance(11 * time.Minute)
			s.is("Stuck")
		}},
		"an object that leaves the selector goes through the states of deletion, and is let go": {func(foo *dsl.Resource, j *journal) {
			foo.LabelSelector = "!other"
			leaving(fails(dsl.Waiting("Godot", time.Minute)))(foo, j)
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.Forget()
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"other": "x", "drained": "yes"}) })
			s.Advance(30 * time.Second)
			s.Called("drain delete")
			if f := s.web().GetFinalizers(); len(f) != 1 {
				s.t.Errorf("finalizers %v", f)
			}
			s.Advance(time.Hour)
			if got := s.Take(); len(got) < 50 || got[len(got)-1] != "drain delete" {
				s.t.Errorf("calls %v", got)
			}
			s.Advance(time.Hour)
			s.Called()
		}},
		"one that leaves the selector and is drained is entered once in each state": {func(foo *dsl.Resource, j *journal) {
			foo.LabelSelector = "!other"
			leaving(succeeds)(foo, j)
		}, func(s *stage) {
			s.open()
			s.Create(web)
			s.Forget()
			s.set("yes", "metadata", "labels", "drained")
			s.Forget()
			s.set("x", "metadata", "labels", "other")
			s.Advance(10 * time.Second)
			s.Called("drain delete", "bury delete")
			if f := s.web().GetFinalizers(); len(f) > 0 {
				s.t.Errorf("finalizers %v", f)
			}
		}},
		"a machine without states of deletion has no part in one": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.Settle()
			if f := s.web().GetFinalizers(); len(f) > 0 {
				s.t.Errorf("finalizers %v", f)
			}
			s.remove()
			s.gone()
		}},
		"an object that is deleted in a state that nobody knows goes through those of deletion": {leaving(succeeds), func(s *stage) {
			s.open()
			s.Create(web)
			s.Settle()
			s.set("Flying", "status", "state")
			s.Settle()
			s.remove()
			s.is("Draining")
		}},
	})
}

// TestMachineWrites holds what a machine does when its writes do not get there, or others write meanwhile.
func TestMachineWrites(t *testing.T) {
	starts := func(s *stage) {
		s.open()
		s.Create(web)
		s.Settle()
		s.Forget()
	}
	slow := func(foo *dsl.Resource, j *journal) {
		m := job(j)
		m.States[1].Enter = j.Note("start", func(context.Context, *dsl.Request) error {
			<-time.After(time.Minute)
			return nil
		})
		foo.Machine(m)
	}
	scenarios(t, map[string]scenario{
		"what was done and could not be written is not done again": {slow, func(s *stage) {
			starts(s)
			s.size(2)
			s.Settle()
			s.FailNext("patch", foos+"/status", apierrors.NewInternalError(errAgain), apierrors.NewInternalError(errAgain))
			s.Advance(2 * time.Minute)
			s.Called("start again", "watch again", "watch again", "watch again")
			s.is("Running")
			if at, _, _ := unstructured.NestedString(s.web().Object, "status", "stateEntered"); at == "" {
				s.t.Error("that it was entered is not written")
			}
		}},
		"what was done is not done again when somebody writes at the same time": {slow, func(s *stage) {
			starts(s)
			s.size(2)
			s.Settle()
			s.set("blue", "spec", "color")
			s.Advance(2 * time.Minute)
			s.Called("start again", "watch again", "watch update")
			s.is("Running")
			if diff := cmp.Diff([]string{"Pending Running it is large"}, s.history()); diff != "" {
				s.t.Errorf("history (-want +got):\n%s", diff)
			}
		}},
		"what an action wants of the object is worked out again when somebody writes at the same time": {func(foo *dsl.Resource, j *journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", func(_ ctx, r *dsl.Request) error {
				<-time.After(time.Minute)
				color, _, _ := unstructured.NestedString(r.Object.Object, "spec", "color")
				r.Patch.SetStatus("color", color)
				return nil
			})
			foo.Machine(m)
		}, func(s *stage) {
			starts(s)
			s.size(2)
			s.Settle()
			s.set("blue", "spec", "color")
			s.Advance(3 * time.Minute)
			s.Called("start again", "watch again", "start update", "watch update")
			if got, _, _ := unstructured.NestedString(s.web().Object, "status", "color"); got != "blue" {
				s.t.Errorf("the color is %q", got)
			}
		}},
		"a wish that was written to the status, and not taken off before a crash, is taken off alone": {oneMachine, func(s *stage) {
			starts(s)
			s.Process.CrashAfter(1)
			s.goes("Cancelled")
			s.is("Cancelled")
			if s.web().GetAnnotations()[gotoKey] == "" {
				s.t.Fatal("the annotation is off already")
			}
			s.Process.Kill()
			s.Process.Restart()
			s.is("Cancelled")
			if len(s.history()) != 1 || s.web().GetAnnotations()[gotoKey] != "" {
				s.t.Errorf("history %v, annotations %v", s.history(), s.web().GetAnnotations())
			}
			if got := s.told(); len(got) > 0 {
				s.t.Errorf("Events %q", got)
			}
		}},
		"a wish under an operator's own domain is heard, too": {oneMachine, func(s *stage) {
			s.Operator.Domain = "example.com"
			starts(s)
			s.set("Cancelled", "metadata", "annotations", "op.example.com/goto")
			s.is("Cancelled")
			s.Wrote("patch foos/status default/web", "patch foos default/web")
		}},
		"Enter is done once more for who takes away that it was": {oneMachine, func(s *stage) {
			starts(s)
			s.size(2)
			s.Called("start again", "watch again")
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "status", "stateEntered")
			})
			s.Called("start update", "watch update")
		}},
		"an object whose filter does not hold rests, and goes on when it holds": {func(foo *dsl.Resource, j *journal) {
			foo.Machine(job(j), dsl.LabelAbsent("paused"))
		}, func(s *stage) {
			starts(s)
			s.size(2)
			s.Forget()
			s.set("yes", "metadata", "labels", "paused")
			s.Advance(2 * time.Hour)
			s.is("Running")
			s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			s.is("Failed")
		}},
		"nothing is written while nothing happens": {oneMachine, func(s *stage) {
			starts(s)
			s.size(2)
			s.Advance(time.Minute)
			s.Forget()
			s.Advance(30 * time.Minute)
			s.Process.Restart()
			s.CutWatches(foos)
			s.Advance(time.Minute)
			s.Wrote()
		}},
	})
}

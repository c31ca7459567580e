// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// leaving is a machine that sees objects off in states: it drains them, and waits until the drained thing is gone.
func leaving(drain dsl.Func, options ...dsl.Option) func(foo *dsl.Resource, j *kit.Journal) {
	return func(foo *dsl.Resource, j *kit.Journal) {
		foo.Machine(dsl.Machine{
			States: []dsl.State{{Name: "Running", Enter: j.Note("start"), Transitions: []dsl.Transition{{To: "Done", When: scene.SizeOver(9)}}}, {Name: "Done", Terminal: true}},
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

// TestAMachineGoesThroughItsStatesOfDeletion holds what becomes of objects that are deleted.
func TestAMachineGoesThroughItsStatesOfDeletion(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"an object is held until it has gone through the states of deletion": {Operator: leaving(scene.Succeeds), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Called("start create")
			s.Remove()
			s.WantState("Draining")
			s.Called("drain delete")
			wantCondition(s, "Ready", "False Draining")
			s.Advance(30 * time.Minute)
			s.WantState("Draining")
			s.Called()
			s.Process.Restart()
			s.WantState("Draining")
			s.Called()
			s.Set("yes", "metadata", "labels", "drained")
			s.Settle()
			s.Called("bury delete")
			s.WantGone()
			if got := eventTexts(s); !slices.Contains(got, "Normal Gone Draining → Gone: it is drained") {
				s.T.Errorf("Events %q", got)
			}
		}},
		"one that comes to a bad end is held, says so, and is let go by a person": {Operator: leaving(scene.Fails(scene.ErrAgain)), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Forget()
			s.Remove()
			s.Advance(10 * time.Second)
			s.WantState("Stuck")
			s.Called("drain delete", "drain delete 2")
			want := []string{ // the last two are of one moment
				"Normal Draining Running → Draining: the object is being deleted",
				"Warning DeletionHeld Deletion is held: handler machine failed for good after 2 attempts: ending in state Stuck",
				"Warning Stuck Draining → Stuck: enter failed 2 times: not yet",
			}
			if diff := cmp.Diff(want, eventTexts(s)); diff != "" {
				s.T.Errorf("Events (-want +got):\n%s", diff)
			}
			s.Advance(24 * time.Hour)
			s.WantState("Stuck")
			s.Called()
			requestState(s, "Gone")
			s.Called("bury delete")
			s.WantGone()
		}},
		"one that may go comes to a bad end and goes": {Operator: leaving(scene.Fails(dsl.Permanent(scene.ErrAgain)), dsl.Release()), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Forget()
			s.Remove()
			s.Called("drain delete")
			s.WantGone()
		}},
		"the time in a state of deletion is over also while its enter waits": {Operator: leaving(scene.Fails(dsl.Waiting("Godot", 24*time.Hour))), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Forget()
			s.Remove()
			s.Advance(50 * time.Minute)
			s.WantState("Draining")
			s.Process.Kill()
			s.Process.Restart()
			s.Advance(11 * time.Minute)
			s.WantState("Stuck")
		}},
		"an object that leaves the selector goes through the states of deletion, and is let go": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector = "!other"
			leaving(scene.Fails(dsl.Waiting("Godot", time.Minute)))(foo, j)
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Forget()
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"other": "x", "drained": "yes"}) })
			s.Advance(30 * time.Second)
			s.Called("drain delete")
			if f := s.Web().GetFinalizers(); len(f) != 1 {
				s.T.Errorf("finalizers %v", f)
			}
			s.Advance(time.Hour)
			if got := s.Take(); len(got) < 50 || got[len(got)-1] != "drain delete" {
				s.T.Errorf("calls %v", got)
			}
			s.Advance(time.Hour)
			s.Called()
		}},
		"one that leaves the selector and is drained is entered once in each state": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.LabelSelector = "!other"
			leaving(scene.Succeeds)(foo, j)
		}, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Forget()
			s.Set("yes", "metadata", "labels", "drained")
			s.Forget()
			s.Set("x", "metadata", "labels", "other")
			s.Advance(10 * time.Second)
			s.Called("drain delete", "bury delete")
			if f := s.Web().GetFinalizers(); len(f) > 0 {
				s.T.Errorf("finalizers %v", f)
			}
		}},
		"a machine without states of deletion has no part in one": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Settle()
			if f := s.Web().GetFinalizers(); len(f) > 0 {
				s.T.Errorf("finalizers %v", f)
			}
			s.Remove()
			s.WantGone()
		}},
		"an object that is deleted in an unknown state goes through those of deletion": {Operator: leaving(scene.Succeeds), Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Settle()
			s.Set("Flying", "status", "state")
			s.Settle()
			s.Remove()
			s.WantState("Draining")
		}},
	})
}

// TestAMachineGoesOnWhenWritesFail holds what a machine does when its writes do not get there, or others write meanwhile.
func TestAMachineGoesOnWhenWritesFail(t *testing.T) {
	starts := func(s *scene.Stage) {
		launchWithConditions(s)
		s.Create(scene.Web)
		s.Settle()
		s.Forget()
	}
	slow := func(foo *dsl.Resource, j *kit.Journal) {
		m := job(j)
		m.States[1].Enter = j.Note("start", func(context.Context, *dsl.Request) error {
			<-time.After(time.Minute)
			return nil
		})
		foo.Machine(m)
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"what was done and could not be written is not done again": {Operator: slow, Play: func(s *scene.Stage) {
			starts(s)
			s.Resize(2)
			s.Settle()
			s.FailNext("patch", scene.Foos+"/status", apierrors.NewInternalError(scene.ErrAgain), apierrors.NewInternalError(scene.ErrAgain))
			s.Advance(2 * time.Minute)
			s.Called("start again", "watch again", "watch again", "watch again")
			s.WantState("Running")
			if at, _, _ := unstructured.NestedString(s.Web().Object, "status", "stateEntered"); at == "" {
				s.T.Error("that it was entered is not written")
			}
		}},
		"what was done is not done again when somebody writes at the same time": {Operator: slow, Play: func(s *scene.Stage) {
			starts(s)
			s.Resize(2)
			s.Settle()
			s.Set("blue", "spec", "color")
			s.Advance(2 * time.Minute)
			s.Called("start again", "watch again", "watch update")
			s.WantState("Running")
			if diff := cmp.Diff([]string{"Pending Running it is large"}, history(s)); diff != "" {
				s.T.Errorf("history (-want +got):\n%s", diff)
			}
		}},
		"what an action wants of the object is worked out again when somebody writes at the same time": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			m := job(j)
			m.States[1].Enter = j.Note("start", func(_ context.Context, r *dsl.Request) error {
				<-time.After(time.Minute)
				color, _, _ := unstructured.NestedString(r.Object.Object, "spec", "color")
				r.Patch.SetStatus("color", color)
				return nil
			})
			foo.Machine(m)
		}, Play: func(s *scene.Stage) {
			starts(s)
			s.Resize(2)
			s.Settle()
			s.Set("blue", "spec", "color")
			s.Advance(3 * time.Minute)
			s.Called("start again", "watch again", "start update", "watch update")
			if got, _, _ := unstructured.NestedString(s.Web().Object, "status", "color"); got != "blue" {
				s.T.Errorf("the color is %q", got)
			}
		}},
		"a wish that was written to the status, and not taken off before a crash, is taken off alone": {Operator: oneMachine, Play: func(s *scene.Stage) {
			starts(s)
			s.Process.CrashAfter(1)
			requestState(s, "Cancelled")
			s.WantState("Cancelled")
			if s.Web().GetAnnotations()[gotoKey] == "" {
				s.T.Fatal("the annotation is off already")
			}
			s.Process.Kill()
			s.Process.Restart()
			s.WantState("Cancelled")
			if len(history(s)) != 1 || s.Web().GetAnnotations()[gotoKey] != "" {
				s.T.Errorf("history %v, annotations %v", history(s), s.Web().GetAnnotations())
			}
			if got := eventTexts(s); len(got) > 0 {
				s.T.Errorf("Events %q", got)
			}
		}},
		"a wish under an operator's own domain is heard, too": {Operator: oneMachine, Play: func(s *scene.Stage) {
			s.Operator.Domain = "example.com"
			starts(s)
			s.Set("Cancelled", "metadata", "annotations", "op.example.com/goto")
			s.WantState("Cancelled")
			s.Wrote("patch foos/status default/web", "patch foos default/web")
		}},
		"Enter is done once more for who takes away that it was": {Operator: oneMachine, Play: func(s *scene.Stage) {
			starts(s)
			s.Resize(2)
			s.Called("start again", "watch again")
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) {
				unstructured.RemoveNestedField(o.Object, "status", "stateEntered")
			})
			s.Called("start update", "watch update")
		}},
		"an object whose filter does not hold rests, and goes on when it holds": {Operator: func(foo *dsl.Resource, j *kit.Journal) {
			foo.Machine(job(j), dsl.LabelAbsent("paused"))
		}, Play: func(s *scene.Stage) {
			starts(s)
			s.Resize(2)
			s.Forget()
			s.Set("yes", "metadata", "labels", "paused")
			s.Advance(2 * time.Hour)
			s.WantState("Running")
			s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
			s.WantState("Failed")
		}},
		"nothing is written while nothing happens": {Operator: oneMachine, Play: func(s *scene.Stage) {
			starts(s)
			s.Resize(2)
			s.Advance(time.Minute)
			s.Forget()
			s.Advance(30 * time.Minute)
			s.Process.Restart()
			s.CutWatches(scene.Foos)
			s.Advance(time.Minute)
			s.Wrote()
		}},
	})
}

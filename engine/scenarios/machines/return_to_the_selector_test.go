// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnObjectMayComeBackBeforeItsMachineHasEnded is law 7 for an object that is back before it has gone through all states
// of deletion: what these have done is done, so it is new.
func TestAnObjectMayComeBackBeforeItsMachineHasEnded(t *testing.T) {
	looks := func(foo *dsl.Resource, j *kit.Journal) { // at its progress alone
		leaving(scene.Succeeds)(foo, j)
		foo.Machines()[0].Known.Reads.Only = true
	}
	away := func(s *scene.Stage) {
		launchWithConditions(s)
		s.Create(scene.Web)
		s.WantState("Running")
		s.Advance(time.Minute)
		s.Forget()
		leaveSelector(s)
		s.Advance(10 * time.Second)
		s.Called("drain delete")
	}
	again := func(s *scene.Stage) {
		comeBack(s)
		s.Advance(time.Minute)
		s.WantState("Running")
		if got := handlersOf(s.Take()); !slices.Equal(got, []string{"start"}) {
			s.T.Errorf("calls %v", got)
		}
		if f := s.Web().GetFinalizers(); len(f) != 1 {
			s.T.Errorf("finalizers %v", f)
		}
		s.Advance(24 * time.Hour)
		s.Process.Restart()
		s.Called()
		s.Remove()
		s.WantState("Draining")
	}
	scene.PlayAll(t, map[string]scene.Scenario{
		"it is entered once more": {Operator: withSelector(leaving(scene.Succeeds)), Play: func(s *scene.Stage) {
			away(s)
			again(s)
		}},
		"also where nothing that the machine reads has changed": {Operator: withSelector(looks), Play: func(s *scene.Stage) {
			away(s)
			again(s)
		}},
		"also when that cannot be written at first": {Operator: withSelector(looks), Play: func(s *scene.Stage) {
			away(s)
			s.FailNext("patch", scene.Foos+"/status", apierrors.NewInternalError(scene.ErrAgain), apierrors.NewInternalError(scene.ErrAgain))
			again(s)
		}},
		"one that is deleted meanwhile goes through them": {Operator: withSelector(looks), Play: func(s *scene.Stage) {
			away(s)
			s.Remove()
			s.Settle()
			comeBack(s)
			s.WantState("Draining")
			s.Set("yes", "metadata", "labels", "drained")
			s.Advance(time.Minute)
			s.WantGone()
		}},
	})
}

// TestAnObjectMayLeaveTheSelectorAndComeBackAtAnyTime is law 7 for an object that leaves the selector and comes back at any
// time, whatever fails meanwhile: it ends in the states of the living, which it has entered after it was drained, or it goes
// through those of deletion.
func TestAnObjectMayLeaveTheSelectorAndComeBackAtAnyTime(t *testing.T) {
	for seed := range uint64(2 * scene.RandomLives) {
		r := rand.New(rand.NewPCG(seed, 3))
		drain := []dsl.Func{scene.Succeeds, scene.Fails(dsl.Waiting("Godot", 3*time.Second))}[r.IntN(2)]
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			scene.Play(t, scene.Scenario{Operator: withSelector(leaving(drain)), Play: func(s *scene.Stage) {
				launchWithConditions(s)
				s.Create(scene.Web)
				s.Settle()
				for range 3 + r.IntN(12) {
					happenAtRandom(s, r)
				}
				comeBack(s)
				s.Advance(10 * time.Minute)
				s.WantState("Running")
				if at := scene.ValueAt(s.Web(), "status.stateEntered"); at == nil {
					s.T.Error("it is not entered")
				}
				if calls := s.Take(); !strings.HasPrefix(calls[len(calls)-1], "start ") {
					s.T.Errorf("calls %v", calls)
				}
				if f := s.Web().GetFinalizers(); len(f) != 1 {
					s.T.Errorf("finalizers %v", f)
				}
				s.Set("yes", "metadata", "labels", "drained")
				s.Remove()
				s.Advance(10 * time.Minute) // with what fails still
				if o := s.Web(); o != nil && s.MachineState() != "Draining" {
					s.T.Errorf("it is there: %v", o.Object["status"])
				}
			}})
		})
	}
}

// happenAtRandom is one thing that happens to an object that comes and goes.
func happenAtRandom(s *scene.Stage, r *rand.Rand) {
	s.T.Helper()
	broken := []error{apierrors.NewInternalError(scene.ErrAgain), apierrors.NewInternalError(scene.ErrAgain)}
	switch r.IntN(9) {
	case 0, 1:
		s.Set("x", "metadata", "labels", "other")
	case 2, 3:
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	case 4:
		s.Set("yes", "metadata", "labels", "drained")
	case 5:
		s.FailNext("patch", scene.Foos, broken[:1+r.IntN(2)]...)
	case 6:
		s.FailNext("patch", scene.Foos+"/status", broken[:1+r.IntN(2)]...)
	case 7:
		s.LoseNext("patch", scene.Foos+"/status")
	case 8:
		s.CutWatches(scene.Foos)
	}
	if r.IntN(3) > 0 {
		s.Advance(time.Duration(r.IntN(5000)) * time.Millisecond)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

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
)

// TestMachineOfWhatComesBackEarly is law 7 for an object that is back before it has gone through all states of deletion: what these
// have done is done, so it is new.
func TestMachineOfWhatComesBackEarly(t *testing.T) {
	looks := func(foo *dsl.Resource, j *journal) { // at its book alone
		leaving(succeeds)(foo, j)
		foo.Machines()[0].Reads.Only = true
	}
	away := func(s *stage) {
		s.open()
		s.Create(web)
		s.is("Running")
		s.Advance(time.Minute)
		s.Forget()
		s.leaves()
		s.Advance(10 * time.Second)
		s.Called("drain delete")
	}
	anew := func(s *stage) {
		s.comesBack()
		s.Advance(time.Minute)
		s.is("Running")
		if got := handlersOf(s.Take()); !slices.Equal(got, []string{"start"}) {
			s.t.Errorf("calls %v", got)
		}
		if f := s.web().GetFinalizers(); len(f) != 1 {
			s.t.Errorf("finalizers %v", f)
		}
		s.Advance(24 * time.Hour)
		s.Process.Restart()
		s.Called()
		s.remove()
		s.is("Draining")
	}
	scenarios(t, map[string]scenario{
		"it is entered once more": {chosen(leaving(succeeds)), func(s *stage) {
			away(s)
			anew(s)
		}},
		"also where nothing that the machine reads has changed": {chosen(looks), func(s *stage) {
			away(s)
			anew(s)
		}},
		"also when that cannot be written at first": {chosen(looks), func(s *stage) {
			away(s)
			s.FailNext("patch", foos+"/status", apierrors.NewInternalError(errAgain), apierrors.NewInternalError(errAgain))
			anew(s)
		}},
		"one that is deleted meanwhile goes through them": {chosen(looks), func(s *stage) {
			away(s)
			s.remove()
			s.Settle()
			s.comesBack()
			s.is("Draining")
			s.set("yes", "metadata", "labels", "drained")
			s.Advance(time.Minute)
			s.gone()
		}},
	})
}

// TestMachineComesAndGoes is law 7 for an object that leaves the selector and comes back at any time, whatever fails meanwhile: it ends
// in the states of the living, which it has entered after it was drained, or it goes through those of deletion.
func TestMachineComesAndGoes(t *testing.T) {
	for seed := range uint64(2 * lives) {
		r := rand.New(rand.NewPCG(seed, 3))
		drain := []dsl.Func{succeeds, fails(dsl.Waiting("Godot", time.Second))}[r.IntN(2)]
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			perform(t, scenario{chosen(leaving(drain)), func(s *stage) {
				s.open()
				s.Create(web)
				s.Settle()
				for range 3 + r.IntN(12) {
					s.happens(r)
				}
				s.comesBack()
				s.Advance(30 * time.Minute)
				s.is("Running")
				if at := value(s.web(), "status.stateEntered"); at == nil {
					s.t.Error("it is not entered")
				}
				if calls := s.Take(); !strings.HasPrefix(calls[len(calls)-1], "start ") {
					s.t.Errorf("calls %v", calls)
				}
				if f := s.web().GetFinalizers(); len(f) != 1 {
					s.t.Errorf("finalizers %v", f)
				}
				s.set("yes", "metadata", "labels", "drained")
				s.remove()
				s.Advance(30 * time.Minute) // with what fails still
				if o := s.web(); o != nil && s.in() != "Draining" {
					s.t.Errorf("it is there: %v", o.Object["status"])
				}
			}})
		})
	}
}

// happens is one thing that happens to an object that comes and goes.
func (s *stage) happens(r *rand.Rand) {
	s.t.Helper()
	broken := []error{apierrors.NewInternalError(errAgain), apierrors.NewInternalError(errAgain)}
	switch r.IntN(9) {
	case 0, 1:
		s.set("x", "metadata", "labels", "other")
	case 2, 3:
		s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
	case 4:
		s.set("yes", "metadata", "labels", "drained")
	case 5:
		s.FailNext("patch", foos, broken[:1+r.IntN(2)]...)
	case 6:
		s.FailNext("patch", foos+"/status", broken[:1+r.IntN(2)]...)
	case 7:
		s.LoseNext("patch", foos+"/status")
	case 8:
		s.CutWatches(foos)
	}
	if r.IntN(3) > 0 {
		s.Advance(time.Duration(r.IntN(5000)) * time.Millisecond)
	}
}

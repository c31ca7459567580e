// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// wantKstatus fails the test unless kstatus finds web so, and web has this condition Reconciling or Stalled; empty for neither.
func wantKstatus(s *scene.Stage, when string, want status.Status, beside string) {
	s.T.Helper()
	s.Settle()
	web := s.Web()
	got, err := status.Compute(web)
	if err != nil || got.Status != want {
		s.T.Errorf("%s kstatus finds %+v (%v), want %s", when, got, err, want)
	}
	var stands []string
	list, _, _ := unstructured.NestedSlice(web.Object, "status", "conditions")
	for _, item := range list {
		if c := item.(map[string]any); c["type"] == "Reconciling" || c["type"] == "Stalled" {
			stands = append(stands, fmt.Sprintf("%v %v %v %v", c["observedGeneration"], c["type"], c["reason"], c["message"]))
		}
	}
	if got := strings.Join(stands, "; "); got != beside {
		s.T.Errorf("%s beside Ready stands %q, want %q", when, got, beside)
	}
}

// TestReconcilingAndStalledStandBesideReady holds that both conditions come and go with the writes of Ready, and cost none.
func TestReconcilingAndStalledStandBesideReady(t *testing.T) {
	const status1 = "patch foos/status default/web"
	final := dsl.Permanent(scene.ErrAgain)
	all := map[string]scene.Scenario{
		"a wait, and its end": {Operator: whenAsked(dsl.Waiting("the queue", 10*time.Second)), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			wantKstatus(s, "at first", status.InProgressStatus, "1 Reconciling Waiting Handler bar: waiting for the queue")
			s.Advance(time.Minute)
			wantKstatus(s, "in the end", status.CurrentStatus, "")
			s.Wrote(status1, status1)
			s.Process.Restart()
			s.Advance(time.Hour)
			s.Wrote()
		}},
		"a final failure, and a change that ends it": {Operator: whenAsked(final), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			wantKstatus(s, "at first", status.FailedStatus, "1 Stalled HandlerFailed Handler bar: not yet")
			s.Resize(2)
			wantKstatus(s, "in the end", status.CurrentStatus, "")
		}},
		"some failures, and then a final one": {Operator: whenAsked(scene.ErrAgain, scene.ErrAgain, scene.ErrAgain, final), Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			wantKstatus(s, "at first", status.InProgressStatus, "1 Reconciling Reconciling Handler bar: it is not through yet")
			s.Advance(2500 * time.Millisecond)
			wantKstatus(s, "after three", status.InProgressStatus, "1 Reconciling HandlerFailing Handler bar: not yet")
			s.Advance(time.Minute)
			wantKstatus(s, "in the end", status.FailedStatus, "1 Stalled HandlerFailed Handler bar: not yet")
		}},
		"a handler that sets Ready itself later": {Operator: func(foo *dsl.Resource, _ *kit.Journal) {
			foo.Ready = new(true)
			tries := 0
			foo.OnReconcile("says", func(_ context.Context, r *dsl.Request) error {
				if tries++; tries == 1 {
					return scene.ErrAgain
				}
				r.Patch.SetCondition("Ready", "True", "Mine", "Of mine.")
				return nil
			}, dsl.WithBackoff(time.Second, time.Second))
		}, Play: func(s *scene.Stage) {
			s.Launch()
			s.Create(scene.Web)
			wantKstatus(s, "at first", status.InProgressStatus, "1 Reconciling Reconciling Handler says: it is not through yet")
			s.Advance(time.Minute)
			wantKstatus(s, "in the end", status.CurrentStatus, "")
			s.Wrote(status1, status1)
		}},
	}
	for name, one := range all {
		play := one.Play
		one.Play = func(s *scene.Stage) {
			s.Update(scene.CRDs, "", "foos.example.com", scene.AddConditions)
			play(s)
		}
		t.Run(name, func(t *testing.T) { scene.Play(t, one) })
	}
}

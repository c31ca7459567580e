// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnObjectInAReadyStateIsNotReadyWhileAnActionWaits holds that an object is not ready while what is done for it in a
// state that is ready waits.
func TestAnObjectInAReadyStateIsNotReadyWhileAnActionWaits(t *testing.T) {
	scene.Play(t, scene.Scenario{Operator: func(foo *dsl.Resource, j *kit.Journal) {
		foo.Machine(dsl.Machine{States: []dsl.State{{Name: "Serving", Terminal: true, Doc: "It serves.", During: func(_ context.Context, r *dsl.Request) error {
			if size, _ := scene.ValueAt(r.Object, "spec.size").(int64); size > 1 {
				return dsl.Waiting("the Deployment", time.Hour)
			}
			return nil
		}}}})
	}, Play: func(s *scene.Stage) {
		launchWithWeb(s)
		wantCondition(s, "Ready", "True Serving It serves.")
		s.Resize(2)
		wantCondition(s, "Ready", "False Serving waiting for the Deployment")
		s.Resize(1)
		wantCondition(s, "Ready", "True Serving It serves.")
	}})
}

// TestAMachineCopesWithASpoiltBook holds what becomes of progress in which somebody has written what is no time, and of metrics.
func TestAMachineCopesWithASpoiltBook(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) { foo.Machine(job(&s.Journal), dsl.LabelAbsent("paused")) })
		m := ops.NewMetrics()
		s.Process = c.Start(s.Operator, func(set *engine.Settings) { set.Metrics = m })
		s.Create(scene.Web)
		s.Resize(2)
		s.WantState("Running")
		s.Advance(10 * time.Minute)
		s.Set("yesterday", "status", "stateSince")
		s.Settle()
		began := time.Now().UTC().Truncate(time.Second)
		s.WantField("status.stateSince", began.Format(time.RFC3339))
		if diff := cmp.Diff(map[string]float64{"Running": 1}, states(t, m, "handwerk_machine_objects")); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		s.Advance(59 * time.Minute)
		s.WantState("Running")
		if got := len(history(s)); got != 1 {
			t.Errorf("%d transitions", got)
		}
		s.Set("yes", "metadata", "labels", "paused")
		s.Set("never", "status", "stateSince")
		s.Settle()
		if diff := cmp.Diff(map[string]float64{"Running": 1}, states(t, m, "handwerk_machine_objects")); diff != "" {
			t.Errorf("objects with a book that is not mended (-want +got):\n%s", diff)
		}
		s.Update(scene.Foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
		s.Settle()
		s.Advance(time.Hour + 2*time.Second)
		s.WantState("Failed")
		if v := series(t, m, "handwerk_machine_state_seconds")["Running"]; v.GetHistogram().GetSampleCount() != 1 || v.GetHistogram().GetSampleSum() > 3602 {
			t.Errorf("times in a state %v", v)
		}
	})
}

// TestATimeInTheFuturePutsOffNoTimeOut holds that who may write the status cannot keep a machine in a state by its times.
func TestATimeInTheFuturePutsOffNoTimeOut(t *testing.T) {
	scene.PlayAll(t, map[string]scene.Scenario{
		"one that is far ahead is replaced by when it is seen": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.WantState("Running")
			s.Advance(10 * time.Minute)
			s.Set("9999-01-01T00:00:00Z", "status", "stateSince")
			s.Settle()
			s.WantField("status.stateSince", time.Now().UTC().Format(time.RFC3339))
			s.Advance(time.Hour + 2*time.Second)
			s.WantState("Failed")
		}},
		"one that was written while no process ran is, too": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.WantState("Running")
			s.Process.Kill()
			s.Set("9999-01-01T00:00:00Z", "status", "stateSince")
			s.Process.Restart()
			s.Settle()
			s.Advance(time.Hour + 2*time.Second)
			s.WantState("Failed")
		}},
		"one of a process whose clock is a little ahead stays": {Operator: oneMachine, Play: func(s *scene.Stage) {
			launchWithConditions(s)
			s.Create(scene.Web)
			s.Resize(2)
			s.WantState("Running")
			soon := time.Now().UTC().Add(30 * time.Second).Format(time.RFC3339)
			s.Set(soon, "status", "stateSince")
			s.Settle()
			s.WantField("status.stateSince", soon)
		}},
	})
}

// TestUnknownStatesAreOneLabelInMetrics holds that names which somebody writes to a status make no series of metrics.
func TestUnknownStatesAreOneLabelInMetrics(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			leaving(scene.Succeeds)(foo, &s.Journal)
			foo.Machines()[0].Machine.Migrate = map[string]string{"Old": "Running"}
		})
		m := ops.NewMetrics()
		s.Process = c.Start(s.Operator, func(set *engine.Settings) { set.Metrics = m })
		for n, state := range []string{"Flying", "Swimming", "Old"} {
			s.Create(scene.Web)
			s.Settle()
			s.Set(state, "status", "state")
			s.Settle()
			s.Set("yes", "metadata", "labels", "drained")
			s.Remove()
			s.Advance(time.Minute)
			s.WantGone()
			if v := series(t, m, "handwerk_machine_transitions_total")["StateUnknown Draining"]; v.GetCounter().GetValue() != float64(min(n+1, 2)) {
				t.Errorf("transitions %v", v)
			}
			for _, name := range []string{"handwerk_machine_transitions_total", "handwerk_machine_state_seconds"} {
				for labels := range series(t, m, name) {
					var from string
					if _, _ = fmt.Sscan(labels, &from); from == "Flying" || from == "Swimming" {
						t.Errorf("%s has %s", name, labels)
					}
				}
			}
		}
		if v := series(t, m, "handwerk_machine_transitions_total")["Old Running"]; v.GetCounter().GetValue() != 1 {
			t.Errorf("transitions of a state that is declared as an old one: %v", v)
		}
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// TestMachineReadyWaits holds that an object is not ready while what is done for it in a state that is ready waits.
func TestMachineReadyWaits(t *testing.T) {
	perform(t, scenario{func(foo *dsl.Resource, j *journal) {
		foo.Machine(dsl.Machine{States: []dsl.State{{Name: "Serving", Terminal: true, Doc: "It serves.", During: func(_ ctx, r *dsl.Request) error {
			if size, _ := value(r.Object, "spec.size").(int64); size > 1 {
				return dsl.Waiting("the Deployment", time.Hour)
			}
			return nil
		}}}})
	}, func(s *stage) {
		s.openWeb()
		s.said("Ready", "True Serving It serves.")
		s.size(2)
		s.said("Ready", "False Serving waiting for the Deployment")
		s.size(1)
		s.said("Ready", "True Serving It serves.")
	}})
}

// TestMachineNonsense holds what becomes of a book in which somebody has written what is no time, and of metrics.
func TestMachineNonsense(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
		s := newStage(t, c)
		s.Operator.Resource(foos, func(foo *dsl.Resource) { foo.Machine(job(&s.Journal), dsl.LabelAbsent("paused")) })
		m := ops.NewMetrics()
		s.Process = c.Start(s.Operator, func(set *engine.Settings) { set.Metrics = m })
		s.Create(web)
		s.size(2)
		s.is("Running")
		s.Advance(10 * time.Minute)
		s.set("yesterday", "status", "stateSince")
		s.Settle()
		began := time.Now().UTC().Truncate(time.Second)
		s.at("status.stateSince", began.Format(time.RFC3339))
		if diff := cmp.Diff(map[string]float64{"Running": 1}, states(t, m, "handwerk_machine_objects")); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		s.Advance(59 * time.Minute)
		s.is("Running")
		if got := len(s.history()); got != 1 {
			t.Errorf("%d transitions", got)
		}
		s.set("yes", "metadata", "labels", "paused")
		s.set("never", "status", "stateSince")
		s.Settle()
		if diff := cmp.Diff(map[string]float64{"Running": 1}, states(t, m, "handwerk_machine_objects")); diff != "" {
			t.Errorf("objects of which nobody mends the book (-want +got):\n%s", diff)
		}
		s.Update(foos, "default", "web", func(o *unstructured.Unstructured) { o.SetLabels(nil) })
		s.Settle()
		s.Advance(time.Hour + 2*time.Second)
		s.is("Failed")
		if v := series(t, m, "handwerk_machine_state_seconds")["Running"]; v.GetHistogram().GetSampleCount() != 1 || v.GetHistogram().GetSampleSum() > 3602 {
			t.Errorf("times in a state %v", v)
		}
	})
}

// TestATimeInTheFuturePutsOffNoTimeOut holds that who may write the status cannot keep a machine in a state by its times.
func TestATimeInTheFuturePutsOffNoTimeOut(t *testing.T) {
	scenarios(t, map[string]scenario{
		"one that is far ahead is replaced by when it is seen": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.is("Running")
			s.Advance(10 * time.Minute)
			s.set("9999-01-01T00:00:00Z", "status", "stateSince")
			s.Settle()
			s.at("status.stateSince", time.Now().UTC().Format(time.RFC3339))
			s.Advance(time.Hour + 2*time.Second)
			s.is("Failed")
		}},
		"one that was written while no process ran is, too": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.is("Running")
			s.Process.Kill()
			s.set("9999-01-01T00:00:00Z", "status", "stateSince")
			s.Process.Restart()
			s.Settle()
			s.Advance(time.Hour + 2*time.Second)
			s.is("Failed")
		}},
		"one of a process whose clock is a little ahead stays": {oneMachine, func(s *stage) {
			s.open()
			s.Create(web)
			s.size(2)
			s.is("Running")
			soon := time.Now().UTC().Add(30 * time.Second).Format(time.RFC3339)
			s.set(soon, "status", "stateSince")
			s.Settle()
			s.at("status.stateSince", soon)
		}},
	})
}

// TestMachineUnknownStatesAreOneLabel holds that names which somebody writes to a status make no series of metrics.
func TestMachineUnknownStatesAreOneLabel(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: foos, Kind: "Foo"})
		s := newStage(t, c)
		s.Operator.Resource(foos, func(foo *dsl.Resource) {
			leaving(succeeds)(foo, &s.Journal)
			foo.Machines()[0].Machine.Migrate = map[string]string{"Old": "Running"}
		})
		m := ops.NewMetrics()
		s.Process = c.Start(s.Operator, func(set *engine.Settings) { set.Metrics = m })
		for n, state := range []string{"Flying", "Swimming", "Old"} {
			s.Create(web)
			s.Settle()
			s.set(state, "status", "state")
			s.Settle()
			s.set("yes", "metadata", "labels", "drained")
			s.remove()
			s.Advance(time.Minute)
			s.gone()
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

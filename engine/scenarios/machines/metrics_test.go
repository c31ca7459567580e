// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machines_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// states returns the series of a gauge by state, without those that are 0.
func states(t *testing.T, m *ops.Metrics, name string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for labels, one := range series(t, m, name) {
		if value := one.GetGauge().GetValue(); value != 0 {
			out[labels] = value
		}
	}
	return out
}

// series returns those of a metric by the value of their last label.
func series(t *testing.T, m *ops.Metrics, name string) map[string]*dto.Metric {
	t.Helper()
	out := map[string]*dto.Metric{}
	for _, one := range scene.Series(t, m, name) {
		key := ""
		for _, label := range one.GetLabel() {
			if label.GetName() != "resource" && label.GetName() != "machine" {
				key += " " + label.GetValue()
			}
		}
		out[key[1:]] = one
	}
	return out
}

// TestMetricsCountObjectsByState holds that they count the objects by state, whatever becomes of objects and process.
func TestMetricsCountObjectsByState(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		s := scene.NewStage(t, c)
		s.Operator.Settings.LeaderElection = dsl.LeaderElection{Mode: dsl.LeaderLease, Namespace: "default"}
		s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.LabelSelector = "!other"
			foo.Machine(job(&s.Journal), dsl.LabelAbsent("paused"))
		})
		m := ops.NewMetrics()
		first := c.Start(s.Operator, func(set *engine.Settings) { set.Metrics = m })
		c.Settle()
		at := func(m *ops.Metrics, want map[string]float64) {
			t.Helper()
			c.Settle()
			if diff := cmp.Diff(want, states(t, m, "handwerk_machine_objects")); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		}
		if n := len(series(t, m, "handwerk_machine_objects")); n != 5 {
			t.Errorf("%d series before there is an object, want one for each state", n)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			c.Create(`{apiVersion: example.com/v1, kind: Foo, metadata: {name: ` + name + `}, spec: {size: 1}}`)
		}
		at(m, map[string]float64{"Pending": 4})
		size := func(name string, n int64) {
			c.Update(scene.Foos, "default", name, func(o *unstructured.Unstructured) { _ = unstructured.SetNestedField(o.Object, n, "spec", "size") })
		}
		label := func(name, key string) {
			c.Update(scene.Foos, "default", name, func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{key: "yes"}) })
		}
		c.Advance(10 * time.Minute)
		size("a", 2)
		size("b", 2)
		at(m, map[string]float64{"Pending": 2, "Running": 2})
		c.Advance(5 * time.Minute)
		if diff := cmp.Diff(map[string]float64{"Pending": 900, "Running": 300}, states(t, m, "handwerk_machine_oldest_seconds")); diff != "" {
			t.Errorf("the oldest (-want +got):\n%s", diff)
		}
		label("a", "paused")
		at(m, map[string]float64{"Pending": 2, "Running": 2})
		label("b", "other") // out of the selector
		at(m, map[string]float64{"Pending": 2, "Running": 1})
		c.Delete(scene.Foos, "default", "c")
		at(m, map[string]float64{"Pending": 1, "Running": 1})
		c.Update(scene.Foos, "default", "d", func(o *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(o.Object, "Flying", "status", "state")
		})
		at(m, map[string]float64{"StateUnknown": 1, "Running": 1})
		if v := series(t, m, "handwerk_machine_transitions_total")["Pending Running"]; v.GetCounter().GetValue() != 2 {
			t.Errorf("transitions %v", v)
		}
		if v := series(t, m, "handwerk_machine_transitions_total")["Running Failed"]; v == nil || v.GetCounter().GetValue() != 0 {
			t.Errorf("a transition that was not taken yet: %v", v)
		}
		if v := series(t, m, "handwerk_machine_state_seconds")["Pending"]; v.GetHistogram().GetSampleSum() != 1200 || v.GetHistogram().GetSampleCount() != 2 {
			t.Errorf("times in a state %v", v)
		}

		other := ops.NewMetrics()
		c.Start(s.Operator, func(set *engine.Settings) { set.Metrics = other })
		c.Settle()
		if got := series(t, other, "handwerk_machine_objects"); len(got) > 0 {
			t.Errorf("a process that stands by counts objects: %v", got)
		}
		first.Kill()
		c.Advance(time.Minute)
		at(other, map[string]float64{"StateUnknown": 1, "Running": 1})
		if got := series(t, m, "handwerk_machine_objects"); len(got) > 0 {
			t.Errorf("a process that leads no more counts objects: %v", got)
		}
	})
}

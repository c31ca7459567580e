// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Series returns the series of a metric.
func Series(t *testing.T, metrics *ops.Metrics, name string) []*dto.Metric {
	t.Helper()
	families, err := metrics.Registry().Gather()
	if err != nil {
		t.Error(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

// Gauges returns the values of a gauge by those of a label.
func Gauges(t *testing.T, metrics *ops.Metrics, name, label string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, one := range Series(t, metrics, name) {
		for _, l := range one.GetLabel() {
			if l.GetName() == label {
				out[l.GetValue()] = one.GetGauge().GetValue()
			}
		}
	}
	return out
}

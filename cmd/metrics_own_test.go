// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestMetricsOfAProgramAreServed holds that a program's own metrics are at /metrics beside the engine's, and that two of one name are an
// error before anything runs.
func TestMetricsOfAProgramAreServed(t *testing.T) {
	counter := func(name string) prometheus.Collector {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: "Mails that were sent."})
	}
	tests := map[string]struct {
		own  []prometheus.Collector
		want string
		says string
	}{
		"a counter": {[]prometheus.Collector{counter("mails_total")}, "\nmails_total 0\n", ""},
		"two counters of one name": {
			[]prometheus.Collector{counter("mails_total"), counter("mails_total")}, "",
			"error: registering a metric of the program: duplicate metrics collector registration attempted\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.metrics = tt.own
			ctx, cancel := context.WithCancel(t.Context())
			var served string
			b.run = func(context.Context) error {
				served = get(addresses(t, b.err.String())["metrics"], "/metrics")
				cancel()
				return nil
			}
			code := b.execute(ctx, strings.Fields("run --config foo.yaml --health-probe-bind-address 127.0.0.1:0 --metrics-bind-address 127.0.0.1:0 --debug-bind-address 127.0.0.1:0"))
			if (code == exitOK) != (tt.says == "") || !strings.HasSuffix(b.err.String(), tt.says) {
				t.Fatalf("exit code %d: %s", code, b.err.String())
			}
			if !strings.Contains(served, tt.want) {
				t.Errorf("/metrics lacks %q", tt.want)
			}
		})
	}
}

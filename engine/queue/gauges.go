// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync/atomic"

	"k8s.io/client-go/util/workqueue"
)

// gauges settles a queue's gauges when it is shut down with keys left: the next queue of that name
// goes on with the same ones, and would never be empty again.
type gauges struct {
	workqueue.MetricsProvider
	depth               *depth
	unfinished, longest workqueue.SettableGaugeMetric
}

// NewDepthMetric returns the gauge of the number of keys, counted along.
func (g *gauges) NewDepthMetric(name string) workqueue.GaugeMetric {
	g.depth = &depth{GaugeMetric: g.MetricsProvider.NewDepthMetric(name)}
	return g.depth
}

// NewUnfinishedWorkSecondsMetric returns the provider's gauge.
func (g *gauges) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	g.unfinished = g.MetricsProvider.NewUnfinishedWorkSecondsMetric(name)
	return g.unfinished
}

// NewLongestRunningProcessorSecondsMetric returns the provider's gauge.
func (g *gauges) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	g.longest = g.MetricsProvider.NewLongestRunningProcessorSecondsMetric(name)
	return g.longest
}

// settle is called when the queue counts no more.
func (g *gauges) settle() {
	if g == nil || g.depth == nil {
		return
	}
	for range g.depth.count.Swap(0) {
		g.depth.GaugeMetric.Dec()
	}
	g.unfinished.Set(0)
	g.longest.Set(0)
}

type depth struct {
	workqueue.GaugeMetric
	count atomic.Int64
}

func (d *depth) Inc() {
	d.count.Add(1)
	d.GaugeMetric.Inc()
}

func (d *depth) Dec() {
	d.count.Add(-1)
	d.GaugeMetric.Dec()
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// Queues receives the metrics of work queues, under the names of client-go's metrics. A queue's name becomes the label "name"
// and, as in controller-runtime, the label "controller".
func (m *Metrics) Queues() interface {
	workqueue.MetricsProvider
	// Settle resets the gauges of a queue that was shut down with keys in it.
	Settle(name string)
} {
	return m.queues
}

type queueMetrics struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	waiting, working           *prometheus.HistogramVec
}

func newQueueMetrics() *queueMetrics {
	labels := []string{"name", "controller"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	duration := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(histogram(name, help, queueBuckets()), labels)
	}
	return &queueMetrics{
		depth: gauge("workqueue_depth", "Keys that wait in the queue for a worker."),
		unfinished: gauge("workqueue_unfinished_work_seconds",
			"Seconds of work in progress that workqueue_work_duration_seconds has not seen yet, summed over the workers. A steady rise means stuck workers."),
		longest: gauge("workqueue_longest_running_processor_seconds",
			"Seconds that the longest running worker of the queue has been at its key."),
		adds:    counter("workqueue_adds_total", "Keys that were added to the queue."),
		retries: counter("workqueue_retries_total", "Keys that were added again, to be tried later."),
		waiting: duration("workqueue_queue_duration_seconds", "How long a key waited in the queue before a worker took it."),
		working: duration("workqueue_work_duration_seconds", "How long a worker was at a key."),
	}
}

// queueBuckets reach from no wait at all to a quarter of an hour.
func queueBuckets() []float64 { return prometheus.ExponentialBuckets(10e-6, 10, 9) }

func (q *queueMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{q.depth, q.unfinished, q.longest, q.adds, q.retries, q.waiting, q.working}
}

func (q *queueMetrics) Settle(name string) {
	for _, gauge := range []*prometheus.GaugeVec{q.depth, q.unfinished, q.longest} {
		gauge.WithLabelValues(name, name).Set(0)
	}
}

func (q *queueMetrics) NewDepthMetric(name string) workqueue.GaugeMetric {
	return q.depth.WithLabelValues(name, name)
}

func (q *queueMetrics) NewAddsMetric(name string) workqueue.CounterMetric {
	return q.adds.WithLabelValues(name, name)
}

func (q *queueMetrics) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return q.waiting.WithLabelValues(name, name)
}

func (q *queueMetrics) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return q.working.WithLabelValues(name, name)
}

func (q *queueMetrics) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.unfinished.WithLabelValues(name, name)
}

func (q *queueMetrics) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return q.longest.WithLabelValues(name, name)
}

func (q *queueMetrics) NewRetriesMetric(name string) workqueue.CounterMetric {
	return q.retries.WithLabelValues(name, name)
}

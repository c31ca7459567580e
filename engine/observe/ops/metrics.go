// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Outcome is how one run of a handler ended.
type Outcome string

// The outcomes.
const (
	// Success: the handler returned nil.
	Success Outcome = "success"
	// Retry: it returned an error and will run again.
	Retry Outcome = "retry"
	// Failed: it failed for good; no retries are left or the error is permanent.
	Failed Outcome = "failed"
	// Timeout: its context ended before it returned, and it will run again.
	Timeout Outcome = "timeout"
	// Panic: it panicked, and will run again.
	Panic Outcome = "panic"
	// Waiting: it waits for other objects, and will run again. See [dsl.Waiting].
	Waiting Outcome = "waiting"
	// Ignored: it returned an error that counts as success.
	Ignored Outcome = "ignored"
)

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{Success, Retry, Failed, Timeout, Panic, Waiting, Ignored} }

// Target is the kind of object that a write request was for.
type Target string

// The targets.
const (
	// Object: the handled object itself.
	Object Target = "object"
	// Status: the handled object's status subresource.
	Status Target = "status"
	// Child: an object that the handled object owns.
	Child Target = "child"
	// Other: any other object.
	Other Target = "other"
)

// Targets returns all targets.
func Targets() []Target { return []Target{Object, Status, Child, Other} }

// Reporter is the part of an operator that reports an Event.
type Reporter string

// The reporters.
const (
	// ByHandler: a handler, through its request.
	ByHandler Reporter = "handler"
	// ByEngine: the engine itself, as for a deletion that a handler holds up.
	ByEngine Reporter = "engine"
	// ByChange: the engine, for objects that it has created and deleted, if the settings ask for it.
	ByChange Reporter = "change"
)

// Metrics are an operator's metrics in a registry of their own. Its methods are safe for use by several goroutines.
type Metrics struct {
	registry  *prometheus.Registry
	queues    *queueMetrics
	requests  *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	leader    *prometheus.GaugeVec
	runs      *runs
	writes    *prometheus.CounterVec
	dropped   *prometheus.CounterVec
	machines  machines
	resources *scraped[ResourceStats]
	indexes   *scraped[IndexStats]
	rights    *scraped[MissingRight]
	pauses    *scraped[PauseStats]
	deletions *scraped[DeletionStats]
	webhooks  *Webhooks
}

// NewMetrics returns metrics, with the usual ones of the process and of the Go runtime.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		queues:   newQueueMetrics(),
		requests: newRequests(),
		latency:  newLatency(),
		leader: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "leader_election_master_status",
			Help: "Whether this process holds the lock of that name: 1 while it leads, 0 while it stands by.",
		}, []string{"name"}),
		runs: newRuns(),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "handwerk_writes_total",
			Help: "Write requests sent for a resource's objects, by target: the object, its status, a child of it, or another object.",
		}, []string{"resource", "target"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "handwerk_events_dropped_total",
			Help: "Events that were not sent, because there were too many of one object, by who reported them: a handler, the engine, or the engine of children it created and deleted (change).",
		}, []string{"reporter"}),
		machines:  newMachines(),
		resources: newResourceCollector(),
		indexes:   newIndexCollector(),
		rights:    newRightsCollector(),
		pauses:    newPauseCollector(),
		deletions: newDeletionCollector(),
		webhooks:  newWebhooks(),
	}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.requests, m.latency, m.leader, m.runs.counts, m.runs.durations, m.writes, m.dropped, m.machines.moves, m.machines.times, m.resources, m.indexes, m.rights, m.pauses, m.deletions, m.webhooks.durations, m.webhooks.inFlight,
	)
	m.registry.MustRegister(m.queues.collectors()...)
	for _, by := range []Reporter{ByHandler, ByEngine, ByChange} {
		m.dropped.WithLabelValues(string(by)) // appears with 0
	}
	return m
}

// Registry returns the registry of the metrics. Operators may add metrics of their own.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler serves the metrics. It leaves out metrics that cannot be collected, and logs the error.
func (m *Metrics) Handler(log logr.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		Registry:      m.registry,
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(logr.ToSlogHandler(log), slog.LevelError),
	})
}

// Declare creates the series of a resource, with 0. Those of a handler are created when it has run.
func (m *Metrics) Declare(resource string) {
	for _, target := range Targets() {
		m.writes.WithLabelValues(resource, string(target))
	}
}

// Leader notes whether this process holds the lock of that name.
func (m *Metrics) Leader(name string, leading bool) {
	m.leader.WithLabelValues(name).Set(number(leading))
}

// Wrote counts the write requests for a handled object: to its status, to the rest of it, or both.
func (m *Metrics) Wrote(resource string, status, whole bool) {
	if status {
		m.Written(resource, Status)
	}
	if whole {
		m.Written(resource, Object)
	}
}

// Written counts one write request that was sent for an object of the resource.
func (m *Metrics) Written(resource string, target Target) {
	m.writes.WithLabelValues(resource, string(target)).Inc()
}

// EventDropped counts an Event that was not sent, because there were too many of its object.
func (m *Metrics) EventDropped(by Reporter) { m.dropped.WithLabelValues(string(by)).Inc() }

// histogram has fixed buckets for every Prometheus, and native ones for servers that ask for them.
func histogram(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name:                            name,
		Help:                            help,
		Buckets:                         buckets,
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  100,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

// handlerBuckets reach from a handler without work to a handler that waits for minutes.
func handlerBuckets() []float64 {
	return []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

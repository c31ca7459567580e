// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/handwerk-dev/handwerk/dsl"
)

// HandlerRun is one run of a handler, for [Metrics.Handled].
type HandlerRun struct {
	// Resource and Handler identify the handler.
	Resource, Handler string
	// Cause is why it ran.
	Cause dsl.Cause
	// Outcome is how the run ended.
	Outcome Outcome
	// Duration is how long the run took.
	Duration time.Duration
}

// runs are the metrics of runs of handlers.
type runs struct {
	counts    *prometheus.CounterVec
	durations *prometheus.HistogramVec

	mu sync.RWMutex
	// known are the existing series. Finding one by its labels costs more than counting.
	known map[runsOf]*runSeries
}

// runsOf are the runs of one handler for one cause.
type runsOf struct {
	resource, handler string
	cause             dsl.Cause
}

// runSeries are the series of such runs.
type runSeries struct {
	counts   map[Outcome]prometheus.Counter
	duration prometheus.Observer
}

func newRuns() *runs {
	return &runs{
		counts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "handwerk_handler_runs_total",
			Help: "Runs of a handler, by cause and outcome (success, retry, failed, timeout, panic, waiting, ignored).",
		}, []string{"resource", "handler", "cause", "outcome"}),
		durations: prometheus.NewHistogramVec(histogram(
			"handwerk_handler_duration_seconds",
			"How long one run of a handler took, whatever its outcome.",
			handlerBuckets(),
		), []string{"resource", "handler"}),
		known: map[runsOf]*runSeries{},
	}
}

// Handled counts one run of a handler. The first run for a cause creates the series of all its outcomes. So a first failure
// after that is an increase, and not a new series, which rate() would not see.
func (m *Metrics) Handled(run HandlerRun) {
	series := m.runs.of(runsOf{run.Resource, run.Handler, run.Cause})
	series.counts[run.Outcome].Inc()
	series.duration.Observe(run.Duration.Seconds())
}

// of returns the series of runs. It creates them if necessary.
func (r *runs) of(which runsOf) *runSeries {
	r.mu.RLock()
	known := r.known[which]
	r.mu.RUnlock()
	if known != nil {
		return known
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	series := &runSeries{counts: map[Outcome]prometheus.Counter{}, duration: r.durations.WithLabelValues(which.resource, which.handler)}
	for _, outcome := range Outcomes() {
		series.counts[outcome] = r.counts.WithLabelValues(which.resource, which.handler, string(which.cause), string(outcome))
	}
	r.known[which] = series
	return series
}

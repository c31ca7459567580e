// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Move is a transition of an object in a machine, for [Metrics.Moved].
type Move struct {
	// Resource and Machine identify the machine. Machine is the id of its handler.
	Resource, Machine string
	From, To          string
	// Stayed is how long the object was in its previous state.
	Stayed time.Duration
}

// machines are the metrics of state machines.
type machines struct {
	moves *prometheus.CounterVec
	times *prometheus.HistogramVec
}

// stateBuckets reach from a second to a week.
func stateBuckets() []float64 {
	return []float64{1, 5, 15, 60, 5 * 60, 15 * 60, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}
}

func newMachines() machines {
	return machines{
		moves: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "handwerk_machine_transitions_total",
			Help: "Transitions of objects in a state machine that were written to their status.",
		}, []string{"resource", "machine", "from", "to"}),
		times: prometheus.NewHistogramVec(histogram(
			"handwerk_machine_state_seconds", "How long objects were in a state of a machine, counted when they leave it.", stateBuckets(),
		), []string{"resource", "machine", "state"}),
	}
}

// Moved counts a transition.
func (m *Metrics) Moved(v Move) {
	m.machines.moves.WithLabelValues(v.Resource, v.Machine, v.From, v.To).Inc()
	m.machines.times.WithLabelValues(v.Resource, v.Machine, v.From).Observe(v.Stayed.Seconds())
}

// DeclareMachine makes the series of a machine's transitions appear with 0.
func (m *Metrics) DeclareMachine(resource string, of *dsl.Machine) {
	for s := range of.All() {
		for _, w := range s.Ways() {
			m.machines.moves.WithLabelValues(resource, of.ID(), s.Name, w.To)
		}
	}
}

// describeStates describes the gauges of states of machines, and returns the function that sets those of a resource.
func (c *scraped[T]) describeStates() func(s ResourceStats, gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	objects := c.describe("handwerk_machine_objects", "Objects in a state of a machine, as their status says it.", "resource", "machine", "state")
	oldest := c.describe("handwerk_machine_oldest_seconds",
		"Seconds that the object has been in the state that has been there for the longest time; 0 where none is.", "resource", "machine", "state")
	return func(s ResourceStats, gauge func(*prometheus.Desc, float64, ...string)) {
		for _, in := range s.States {
			gauge(objects, float64(in.Objects), s.Resource, in.Machine, in.State)
			age := 0.0
			if in.Objects > 0 {
				age = max(0, time.Since(in.Oldest).Seconds())
			}
			gauge(oldest, age, s.Resource, in.Machine, in.State)
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// lookPeriod is how often the work in progress is published while there is some.
const lookPeriod = 500 * time.Millisecond

// Metrics are the metrics of queues.
type Metrics interface {
	workqueue.MetricsProvider
	// Settle is called when the queue of a name was shut down. It resets the gauges, because the next queue of that name
	// continues them, and keys may be left.
	Settle(name string)
}

// tally records the same metrics as client-go's workqueue. client-go keeps a map with an entry for each queued key,
// which never shrinks; here the order of the queue knows when a key came. A nil tally records nothing.
type tally[K comparable] struct {
	depth              workqueue.GaugeMetric
	adds, retries      workqueue.CounterMetric
	waited, worked     workqueue.HistogramMetric
	unfinished, oldest workqueue.SettableGaugeMetric
	metrics            Metrics
	name               string

	mu   sync.Mutex
	held map[K]time.Time // since when workers have their keys
	// look publishes the work in progress periodically, while looks is true.
	look   *time.Timer
	looks  bool
	closed bool
}

func newTally[K comparable](name string, m Metrics) *tally[K] {
	if m == nil {
		return nil
	}
	return &tally[K]{
		depth: m.NewDepthMetric(name), adds: m.NewAddsMetric(name), retries: m.NewRetriesMetric(name),
		waited: m.NewLatencyMetric(name), worked: m.NewWorkDurationMetric(name),
		unfinished: m.NewUnfinishedWorkSecondsMetric(name), oldest: m.NewLongestRunningProcessorSecondsMetric(name),
		metrics: m, name: name, held: map[K]time.Time{},
	}
}

// added records one more waiting key. After the end it does nothing.
func (m *tally[K]) added() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.adds.Inc()
		m.depth.Inc()
	}
}

// holds reports whether a worker has the key.
func (m *tally[K]) holds(key K) bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, held := m.held[key]
	return held
}

// delayed records a key that will be added later.
func (m *tally[K]) delayed() {
	if m != nil {
		m.retries.Inc()
	}
}

// taken records that a worker has a key that had come at this time.
func (m *tally[K]) taken(key K, came time.Time) {
	if m == nil {
		return
	}
	now := time.Now()
	m.depth.Dec()
	m.waited.Observe(now.Sub(came).Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[key] = now
	switch {
	case m.looks || m.closed:
		return
	case m.look == nil:
		m.look = time.AfterFunc(lookPeriod, m.publish)
	default:
		m.look.Reset(lookPeriod)
	}
	m.looks = true
}

// done records that the worker is done with a key.
func (m *tally[K]) done(key K) {
	if m == nil {
		return
	}
	m.mu.Lock()
	since, held := m.held[key]
	delete(m.held, key)
	m.mu.Unlock()
	if held {
		m.worked.Observe(time.Since(since).Seconds())
	}
}

// publish publishes the work in progress, again and again until no work is left.
func (m *tally[K]) publish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return
	}
	var total, oldest time.Duration
	for _, since := range m.held {
		age := time.Since(since)
		total, oldest = total+age, max(oldest, age)
	}
	m.unfinished.Set(total.Seconds())
	m.oldest.Set(oldest.Seconds())
	if m.looks = len(m.held) > 0; m.looks {
		m.look.Reset(lookPeriod)
	}
}

// close ends the tally: keys that still wait do not count after it.
func (m *tally[K]) close() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if m.look != nil {
		m.look.Stop()
	}
	m.metrics.Settle(m.name)
}

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

// Metrics are where queues report to.
type Metrics interface {
	workqueue.MetricsProvider
	// Settle is told that the queue of a name was shut down, maybe with keys left: the next one of that name goes
	// on with its gauges, and would never be empty again.
	Settle(name string)
}

// tally counts what client-go's own metrics of a workqueue do, and means the same by them. Those have a map with an
// entry for each key that is queued, which is never given back; here the order of the queue knows when a key came. Nil
// counts nothing.
type tally[K comparable] struct {
	depth              workqueue.GaugeMetric
	adds, retries      workqueue.CounterMetric
	waited, worked     workqueue.HistogramMetric
	unfinished, oldest workqueue.SettableGaugeMetric
	settle             func()

	mu   sync.Mutex
	held map[K]time.Time // since when workers have their keys
	// look publishes the work in progress from time to time, while looks is true.
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
		settle: func() { m.Settle(name) }, held: map[K]time.Time{},
	}
}

// added: one more key waits for a worker. After the end none does.
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

// delayed: a key is to be added later.
func (m *tally[K]) delayed() {
	if m != nil {
		m.retries.Inc()
	}
}

// taken: a worker has a key that had come at this time.
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

// done: the worker is done with it.
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

// publish tells of the work in progress, and goes on doing so until there is none.
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

// close ends it: what still waits does not count any more.
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
	m.settle()
}

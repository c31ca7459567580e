// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package stages

import (
	"sync"
	"time"
)

// key names an object in the queue.
type key struct{ kind, namespace, name string }

// queue holds the keys that are due, each once, and timers of those that are due later.
type queue struct {
	mu     sync.Mutex
	due    []key
	queued map[key]bool
	later  map[key]alarm
	closed bool
	signal chan struct{}
}

// alarm is the timer of a key.
type alarm struct {
	at    time.Time
	timer *time.Timer
}

func newQueue() *queue {
	return &queue{queued: map[key]bool{}, later: map[key]alarm{}, signal: make(chan struct{}, 1)}
}

// add queues a key unless it is queued already.
func (q *queue) add(k key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.queued[k] {
		return
	}
	q.queued[k] = true
	q.due = append(q.due, k)
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// after queues a key after a while. The earliest time of a key counts.
func (q *queue) after(k key, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := time.Now().Add(d)
	old, found := q.later[k]
	if q.closed || found && !old.at.After(at) {
		return
	}
	if found {
		old.timer.Stop()
	}
	q.later[k] = alarm{at, time.AfterFunc(d, func() { q.ring(k, at) })}
}

func (q *queue) ring(k key, at time.Time) {
	q.mu.Lock()
	if q.later[k].at.Equal(at) {
		delete(q.later, k)
	}
	q.mu.Unlock()
	q.add(k)
}

// next returns the key that has waited for longest.
func (q *queue) next() (key, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.due) == 0 {
		q.due = nil
		return key{}, false
	}
	k := q.due[0]
	q.due = q.due[1:]
	delete(q.queued, k)
	return k, true
}

// close stops all timers.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.due = true, nil
	for _, a := range q.later {
		a.timer.Stop()
	}
}

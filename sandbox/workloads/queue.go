// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/sandbox/clock"
)

// key names an object in the queue.
type key struct{ kind, namespace, name string }

// moment is how long a key waits at most for keys of lower ranks.
const moment = 100 * time.Millisecond

// queue holds the keys that are due, each once, and timers of those that are due later. Keys of the lowest rank come
// first: owners count what is below them, so they are brought up to date once, when that has nothing more to do. So that
// no rank keeps another from its turn, the oldest key comes first as soon as it has waited for a moment.
type queue struct {
	// ranks are those of the kinds.
	ranks map[string]rank
	// clock says when keys are due that are due later. How long one waits for its turn is a matter of this machine's clock.
	clock  clock.Clock
	mu     sync.Mutex
	due    [ranks][]turn // by ranks, within in the order in which they came
	queued map[key]bool
	later  map[key]alarm
	closed bool
	signal chan struct{}
}

// turn is a key that is due since a time.
type turn struct {
	key   key
	since time.Time
}

// alarm is the timer of a key.
type alarm struct {
	at    time.Time
	timer clock.Timer
}

func newQueue(kinds []kind, clock clock.Clock) *queue {
	by := make(map[string]rank, len(kinds))
	for _, k := range kinds {
		by[k.name] = k.rank
	}
	return &queue{ranks: by, clock: clock, queued: map[key]bool{}, later: map[key]alarm{}, signal: make(chan struct{}, 1)}
}

// add queues a key unless it is queued already, and signals that there is news in any case.
func (q *queue) add(k key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed && !q.queued[k] {
		q.queued[k] = true
		at := q.ranks[k.kind]
		q.due[at] = append(q.due[at], turn{k, time.Now()})
	}
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// after queues a key after a while. The earliest time of a key counts.
func (q *queue) after(k key, d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.clock.Now().Add(d)
	old, found := q.later[k]
	if q.closed || found && !old.at.After(at) {
		return
	}
	if found {
		old.timer.Stop()
	}
	q.later[k] = alarm{at, q.clock.AfterFunc(d, func() { q.ring(k, at) })}
}

func (q *queue) ring(k key, at time.Time) {
	q.mu.Lock()
	if q.later[k].at.Equal(at) {
		delete(q.later, k)
	}
	q.mu.Unlock()
	q.add(k)
}

// next returns the key whose turn it is.
func (q *queue) next() (key, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := -1
	for i, list := range q.due {
		if len(list) > 0 && (at < 0 || list[0].since.Before(q.due[at][0].since) && time.Since(list[0].since) >= moment) {
			at = i
		}
	}
	if at < 0 {
		return key{}, false
	}
	k := q.due[at][0].key
	if q.due[at] = q.due[at][1:]; len(q.due[at]) == 0 {
		q.due[at] = nil
	}
	delete(q.queued, k)
	return k, true
}

// close stops all timers.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed, q.due = true, [ranks][]turn{}
	for _, a := range q.later {
		a.timer.Stop()
	}
}

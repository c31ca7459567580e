// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package queue holds the keys of a resource until a worker takes them.
//
// It is client-go's workqueue with a different order: a key is queued at most once, a key is processed by one
// worker at a time, and a delayed key costs no goroutine. A key with a recent change goes before one that can wait,
// waiting keys rise with their age, and namespaces share the workers' time fairly.
package queue

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Class says why a key is queued, and thereby how urgent it is.
type Class int

// The classes, most urgent first.
const (
	// Asked: somebody asks about the object and waits for the answer.
	Asked Class = iota
	// Fresh: a change was just seen.
	Fresh
	// Due: its time has come, as for a retry, a timer or a waiting key that is woken.
	Due
	// Backlog: the key came with a first list.
	Backlog
	// Resync: nothing happened, but the object is handled again.
	Resync
)

// Queue hands out keys to workers. All methods are safe for use by several goroutines.
type Queue[K comparable] struct {
	inner  *workqueue.Typed[K]
	delays workqueue.TypedDelayingInterface[K]
	order  *order[K]
	tally  *tally[K]

	mu    sync.Mutex
	later map[K]Class // the classes of delayed keys
}

// New returns an empty queue. The name is the name label of its metrics; nil metrics means none. Of returns the
// tenant of a key. [Queue.ShutDown] must be called in the end, or goroutines leak.
func New[K comparable](name string, metrics Metrics, of func(K) string) *Queue[K] {
	m := newTally[K](name, metrics)
	q := &Queue[K]{order: newOrder(m, of), tally: m, later: map[K]Class{}}
	// Without a name, client-go records no metrics.
	q.inner = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Queue: q.order})
	q.delays = workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{Queue: delayed[K]{q.inner, q}, Clock: noBeat{}})
	return q
}

// Add queues the key. If it is queued already, it moves up if the class is better, and keeps its age. If a worker
// has it, it is queued when the worker is done with it. After ShutDown nothing happens.
func (q *Queue[K]) Add(key K, class Class) {
	q.order.want(key, class, time.Now())
	q.inner.Add(key)
}

// AddAfter queues the key after the given time, or at once if that is not positive. Of several delays of a key the
// earliest counts, with the best of their classes. An Add in the meantime does not end the delay: the key is queued
// a second time when the delay is over.
func (q *Queue[K]) AddAfter(key K, class Class, d time.Duration) {
	if q.order.closed.Load() {
		return
	}
	q.mu.Lock()
	if known, found := q.later[key]; !found || class < known {
		q.later[key] = class
	}
	q.mu.Unlock()
	q.tally.delayed()
	q.delays.AddAfter(key, d)
}

// Get waits for a key and returns it; the caller must call Done with it. After ShutDown it returns shutdown at
// once, even if keys are left.
func (q *Queue[K]) Get() (key K, shutdown bool) { return q.inner.Get() }

// OnlyAsked reports whether a key that a worker has was queued because somebody asks, and for no other reason. It is called once.
func (q *Queue[K]) OnlyAsked(key K) bool {
	q.order.mu.Lock()
	defer q.order.mu.Unlock()
	asked := q.order.asked[key]
	delete(q.order.asked, key)
	return asked
}

// Done ends the worker's turn with a key that it got from Get.
func (q *Queue[K]) Done(key K) {
	q.tally.done(key)
	q.order.tenants.done(key)
	q.inner.Done(key)
}

// Len is the number of keys that a worker could take now, without delayed keys and keys that wait for their worker
// to be done. After ShutDown it is zero.
func (q *Queue[K]) Len() int { return q.inner.Len() }

// ShutDown stops handing out keys. Queued and delayed keys are dropped; workers keep theirs until Done. It may be
// called more than once.
func (q *Queue[K]) ShutDown() {
	if !q.order.closed.Swap(true) {
		q.delays.ShutDown()
		q.tally.close()
	}
}

// delayed is the target of the delaying queue for keys whose time has come.
type delayed[K comparable] struct {
	workqueue.TypedInterface[K]
	queue *Queue[K]
}

func (d delayed[K]) Add(key K) {
	q := d.queue
	q.mu.Lock()
	class, found := q.later[key]
	delete(q.later, key)
	if len(q.later) == 0 {
		q.later = map[K]Class{} // the old one would not shrink
	}
	q.mu.Unlock()
	if !found {
		class = Due // two delays of the key overlapped, and the first took the class
	}
	q.Add(key, class)
}

// Next is when a key must be processed again. The zero value means only after an event.
type Next struct {
	After time.Duration
	Class Class
	// Now is true if it is due at once, as soon as the cache has the writes.
	Now bool
}

// AtOnce returns a Next that is due now.
func (n Next) AtOnce() Next { return Next{time.Nanosecond, Fresh, true} }

// Sooner returns the earlier of two.
func (n Next) Sooner(after time.Duration, class Class) Next {
	after = max(after, time.Nanosecond)
	if n.After == 0 || after < n.After {
		return Next{after, class, n.Now}
	}
	return n
}

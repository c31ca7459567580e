// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// Questions are the questions of people about objects of a resource. The worker that has the key answers them, because
// only it may use the object's state. The zero value is empty.
type Questions struct {
	// asked counts open questions, so that reconciles need no lock to see that there are none.
	asked atomic.Int32
	mu    sync.Mutex
	open  map[cache.ObjectName][]chan *why.Answer
}

// Ask asks about an object. Withdraw ends the wait for the answer.
func (q *Questions) Ask(key cache.ObjectName) (answer <-chan *why.Answer, withdraw func()) {
	to := make(chan *why.Answer, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = map[cache.ObjectName][]chan *why.Answer{}
	}
	q.open[key] = append(q.open[key], to)
	q.asked.Add(1)
	return to, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.asked.Add(-1)
		if q.open[key] = slices.DeleteFunc(q.open[key], func(c chan *why.Answer) bool { return c == to }); len(q.open[key]) == 0 {
			delete(q.open, key)
		}
	}
}

// answer answers the open questions about an object. It computes the answer only if there is a question.
func (q *Questions) answer(key cache.ObjectName, with func() *why.Answer) {
	if q.asked.Load() > 0 {
		q.give(key, with)
	}
}

func (q *Questions) give(key cache.ObjectName, with func() *why.Answer) {
	q.mu.Lock()
	asked := len(q.open[key]) > 0
	q.mu.Unlock()
	if !asked {
		return
	}
	answer := with()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, to := range q.open[key] {
		to <- answer // the channel has room for one value, and gets one
	}
	delete(q.open, key)
}

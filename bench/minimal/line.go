// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "sync"

// line holds the events that wait for a worker. It takes as many as come: the API server ends a watch whose reader waits,
// and with many Foos the version to go on from is too old by then.
type line struct {
	mu      sync.Mutex
	some    *sync.Cond
	waiting []event
	closed  bool
}

// kept is how many events a line keeps room for.
const kept = 1 << 10

func newLine() *line {
	l := &line{}
	l.some = sync.NewCond(&l.mu)
	return l
}

func (l *line) put(e event) {
	l.mu.Lock()
	l.waiting = append(l.waiting, e)
	first := len(l.waiting) == 1
	l.mu.Unlock()
	if first {
		l.some.Signal()
	}
}

// close lets events end after those that wait.
func (l *line) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.some.Signal()
}

// events yields the events in their order until the line is closed. One worker may read a line.
func (l *line) events(yield func(event) bool) {
	var batch []event
	for {
		batch = l.take(batch[:0])
		if len(batch) == 0 {
			return
		}
		for _, e := range batch {
			if !yield(e) {
				return
			}
		}
	}
}

// take waits for events and returns all of them, none when the line is closed. It keeps room for later events in spare.
func (l *line) take(spare []event) []event {
	if cap(spare) > kept {
		spare = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) == 0 && !l.closed {
		l.some.Wait()
	}
	batch := l.waiting
	l.waiting = spare
	return batch
}

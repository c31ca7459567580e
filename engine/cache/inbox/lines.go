// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"sync"
	"sync/atomic"
)

// lines has the waits to be logged, in order. They are added while the inbox is locked, and written when it is not.
type lines struct {
	owner Owner
	// writing keeps the order in the log.
	writing sync.Mutex
	// some is true if there is something to log.
	some atomic.Bool

	mu  sync.Mutex
	all []Wait
}

// add queues a line.
func (l *lines) add(w Wait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, w)
	l.some.Store(true)
}

// flush writes the queued lines. The lock of the inbox is not held.
func (l *lines) flush() {
	if !l.some.Load() {
		return
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	all := l.all
	l.all = nil
	l.some.Store(false)
	l.mu.Unlock()
	for _, w := range all {
		l.owner.LogWait(w)
	}
}

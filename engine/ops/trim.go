// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"sync"
	"time"
)

const (
	// period is the time in which passes are counted.
	period = 3 * time.Second
	// busy is the number of passes in a period that make it a burst.
	busy = 20
	// many is the number of passes of a burst after which memory is given back.
	many = 300
)

// Trimmer finds out when a burst is over. A nil Trimmer does nothing. Its methods are safe for use by several goroutines.
type Trimmer struct {
	free func()

	mu sync.Mutex
	// look ends a period, while looks is true. No timer runs when nothing happens.
	look  *time.Timer
	looks bool
	// passes is the number of passes in the period, burst that in the burst so far.
	passes, burst int
	ended         bool
}

// NewTrimmer returns a trimmer that calls free some seconds after each burst, once. Without free it is nil.
func NewTrimmer(free func()) *Trimmer {
	if free == nil {
		return nil
	}
	return &Trimmer{free: free}
}

// Begin begins a burst that counts however few passes it has: a process that starts leaves garbage.
func (t *Trimmer) Begin() { t.count(0, many) }

// Passed counts a pass.
func (t *Trimmer) Passed() { t.count(1, 0) }

func (t *Trimmer) count(passes, burst int) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passes += passes
	t.burst += burst
	switch {
	case t.looks || t.ended:
		return
	case t.look == nil:
		t.look = time.AfterFunc(period, t.rest)
	default:
		t.look.Reset(period)
	}
	t.looks = true
}

// rest ends a period. It gives memory back without the lock, so counting does not wait.
func (t *Trimmer) rest() {
	if t.over() {
		t.free()
	}
}

// over reports whether a burst is over: few passes, or none, were in the period, and many before. Work that goes on
// slowly is no burst, however long it takes.
func (t *Trimmer) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	passes, burst := t.passes, t.burst
	t.passes, t.burst = 0, 0
	if t.ended {
		return false
	}
	if t.looks = passes >= busy; t.looks {
		t.burst = burst + passes
		t.look.Reset(period)
		return false
	}
	return burst >= many
}

// End stops the trimmer: it gives no memory back any more.
func (t *Trimmer) End() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	if t.look != nil {
		t.look.Stop()
	}
}

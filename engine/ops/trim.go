// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"sync"
	"time"
)

const (
	// period is how long the work of which the rate counts takes.
	period = 3 * time.Second
	// busy is from how many passes within a period on there is a burst.
	busy = 20
	// many passes of a burst leave enough behind for memory to be given back.
	many = 300
)

// Trimmer knows when a burst is over. Nil knows of none. Its methods may be called at any time from any goroutine.
type Trimmer struct {
	free func()

	mu sync.Mutex
	// look ends a period, while looks is true: nobody looks when nothing happens.
	look  *time.Timer
	looks bool
	// passes are those of the period, burst those of the burst so far.
	passes, burst int
	ended         bool
}

// NewTrimmer returns a trimmer that calls free some seconds after each burst, once. Nil means that there is none.
func NewTrimmer(free func()) *Trimmer {
	if free == nil {
		return nil
	}
	return &Trimmer{free: free}
}

// Begin begins a burst of which it does not matter how many passes it takes: a process that starts leaves garbage.
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

// rest ends a period. Nobody who counts waits while memory is given back.
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

// End ends it: nothing is given back any more.
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

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

// Trimmer finds out when a burst begins and when it is over. A nil Trimmer does nothing. Its methods are safe for use by
// several goroutines.
type Trimmer struct {
	settings TrimSettings

	mu sync.Mutex
	// look ends a period, while looks is true. No timer runs when nothing happens.
	look  *time.Timer
	looks bool
	// passes is the number of passes in the period, burst that in the burst so far.
	passes, burst int
	// bursts is true from the call of Burst to that of Rest.
	bursts, ended bool
}

// TrimSettings are what a [Trimmer] calls, each once for a burst. Nil is no call.
type TrimSettings struct {
	// Burst is called when a burst has so many passes that it counts, and Rest some seconds after its end, before Free. Rest
	// is also called when the trimmer ends in a burst.
	Burst, Rest func()
	// Free gives memory back.
	Free func()
}

// NewTrimmer returns a trimmer.
func NewTrimmer(s TrimSettings) *Trimmer { return &Trimmer{settings: s} }

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
	if t.ended {
		return
	}
	if !t.bursts && t.burst+t.passes >= many {
		t.bursts = true
		call(t.settings.Burst)
	}
	switch {
	case t.looks:
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
		call(t.settings.Free)
	}
}

// over reports whether a burst is over: few passes, or none, were in the period, and many before. Work that goes on
// slowly is no burst, however long it takes.
func (t *Trimmer) over() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	passes := t.passes
	t.passes = 0
	if t.ended {
		return false
	}
	if t.looks = passes >= busy; t.looks {
		t.burst += passes
		t.look.Reset(period)
		return false
	}
	t.burst = 0
	return t.end()
}

// end ends a burst, and reports whether there was one. t.mu is held.
func (t *Trimmer) end() bool {
	was := t.bursts
	if t.bursts = false; was {
		call(t.settings.Rest)
	}
	return was
}

// End stops the trimmer: it gives no memory back any more.
func (t *Trimmer) End() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.end()
	if t.look != nil {
		t.look.Stop()
	}
}

func call(f func()) {
	if f != nil {
		f()
	}
}

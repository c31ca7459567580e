// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"sync"
	"time"
)

// fence stands before all writes. It is open for one term, and within it only while the last
// renewal is not older than the limit.
type fence struct {
	limit time.Duration

	mu      sync.Mutex
	open    bool
	shut    chan struct{} // closed when the term is over
	renewed time.Time     // when the last renewal was begun
}

// start opens the fence for a term. The channel is closed when the term is over.
func (f *fence) start() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open = true
	f.shut = make(chan struct{})
	return f.shut
}

// stop ends the term. It reports whether there was one.
func (f *fence) stop() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		return false
	}
	f.open = false
	close(f.shut)
	return true
}

// renew notes a renewal by the time at which it was begun: the server counts from later than that.
func (f *fence) renew(begun time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = begun
}

func (f *fence) isOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

func (f *fence) held() bool { return f.isOpen() && f.left() > 0 }

// left is the time until the last renewal is too old. The monotonic clock tells it when the
// process was stopped, also if the wall clock was set back; the wall clock tells it when the
// machine was suspended, for which the monotonic clock stands still.
func (f *fence) left() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	passed := max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0)))
	return f.limit - passed
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"sync"
	"time"
)

// fence stands before all writes. It is open for one term, and within it only while the last
// renewal is not older than the limit, and while nothing says that somebody else has the lock.
type fence struct {
	limit time.Duration
	asked chan struct{} // of one place: the lock is to be read

	mu      sync.Mutex
	open    bool
	shut    chan struct{} // closed when the term is over
	renewed time.Time     // when the last renewal was begun
	signs   int           // that somebody else has the lock, in this term
	certain chan struct{} // nil, or in doubt: closed when the doubt is over
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
	f.calmLocked()
	return true
}

// renew notes a renewal by the time at which it was begun: the server counts from later than that.
func (f *fence) renew(begun time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = begun
}

// doubt takes a sign that somebody else has the lock: the fence is shut until trust.
func (f *fence) doubt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		return
	}
	f.signs++
	if f.certain == nil {
		f.certain = make(chan struct{})
	}
	select {
	case f.asked <- struct{}{}:
	default: // it is to be read already
	}
}

// doubts tells how many signs there were, and whether they are in doubt.
func (f *fence) doubts() (signs int, in bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.signs, f.certain != nil
}

// trust ends the doubt, unless there were more signs than those that were known when the lock was
// read: what came later may be about what came later.
func (f *fence) trust(signs int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.signs == signs {
		f.calmLocked()
	}
}

func (f *fence) calmLocked() {
	if f.certain != nil {
		close(f.certain)
		f.certain = nil
	}
}

func (f *fence) isOpen() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

func (f *fence) held() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open && f.certain == nil && f.leftLocked() > 0
}

// sure is held, after any doubt is over. It waits no longer than the last renewal counts.
func (f *fence) sure(ctx context.Context) bool {
	for {
		f.mu.Lock()
		left, certain := f.leftLocked(), f.certain
		if !f.open {
			left = 0
		}
		f.mu.Unlock()
		if left <= 0 || certain == nil {
			return left > 0
		}
		select {
		case <-certain:
		case <-time.After(left):
		case <-ctx.Done():
			return false
		}
	}
}

// left is the time until the last renewal is too old.
func (f *fence) left() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leftLocked()
}

// leftLocked asks two clocks. The monotonic clock tells it when the process was stopped, also if
// the wall clock was set back; the wall clock tells it when the machine was suspended, for which
// the monotonic clock stands still.
func (f *fence) leftLocked() time.Duration {
	now := time.Now()
	passed := max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0)))
	return f.limit - passed
}

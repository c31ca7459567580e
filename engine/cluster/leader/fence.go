// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

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
	looked  time.Time     // when the lock was last to be read for a conflict
	looking chan struct{} // nil, or the lock is being read for a conflict: closed when that was done
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
	free(&f.certain)
	free(&f.looking)
	return true
}

// renew notes a renewal by the time at which it was begun: the server counts from later than that.
func (f *fence) renew(begun time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = begun
}

// recheck takes a sign that somebody else has the lock: the fence is shut until trust.
func (f *fence) recheck() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open {
		return
	}
	f.signs++
	if f.certain == nil {
		f.certain = make(chan struct{})
	}
	f.askLocked()
}

// askLocked has the lock read.
func (f *fence) askLocked() {
	select {
	case f.asked <- struct{}{}:
	default: // it is to be read already
	}
}

// look has the lock read for a conflict, unless that was done a moment ago. The channel is closed when it was read; it is nil
// where there is nothing to wait for.
func (f *fence) look(moment time.Duration) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.open || f.looking == nil && time.Since(f.looked) < moment {
		return nil
	}
	if f.looking == nil {
		f.looking, f.looked = make(chan struct{}), time.Now()
		f.askLocked()
	}
	return f.looking
}

// question is what a read of the lock answers: the signs so far, and a conflict.
type question struct {
	signs   int
	looking chan struct{}
}

// question returns what is to be answered, and whether there is anything.
func (f *fence) question() (q question, open bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return question{f.signs, f.looking}, f.certain != nil || f.looking != nil
}

// trust takes the answer that the lock is this process's. It ends the doubt, unless there were more signs than
// those that were known when the lock was read: what came later may be about what came later.
func (f *fence) trust(q question) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.signs == q.signs {
		free(&f.certain)
	}
	if f.looking == q.looking {
		free(&f.looking)
	}
}

// free lets those go on that wait.
func free(waiting *chan struct{}) {
	if *waiting != nil {
		close(*waiting)
		*waiting = nil
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

// leftLocked reads two clocks. The monotonic clock counts while the process is stopped, also if the wall clock is set
// back. The wall clock counts while the machine is suspended, when the monotonic clock stands still.
func (f *fence) leftLocked() time.Duration {
	now := time.Now()
	passed := max(now.Sub(f.renewed), now.Round(0).Sub(f.renewed.Round(0)))
	return f.limit - passed
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Stopped is a clock that stands still. Its time moves by [Stopped.Next] alone, from one function that is due to the
// following one, so that a caller can wait for the consequences of each.
type Stopped struct {
	mu  sync.Mutex
	now time.Time
	// timers are those of functions that are due later, the next one first.
	timers []*timer
	// scheduled is the number of functions so far, and running of those that run in goroutines.
	scheduled, running int
	// ended is closed when none runs any more; nil if nobody waits for that.
	ended chan struct{}
}

// timer is a function that is due at a time. Of several at one time, the one with the lowest number comes first.
type timer struct {
	clock  *Stopped
	at     time.Time
	number int
	run    func()
}

// NewStopped returns a clock that stands at a time.
func NewStopped(at time.Time) *Stopped { return &Stopped{now: at.Round(0)} }

// Now returns the time at which the clock stands.
func (c *Stopped) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc implements [Clock]. A function that is due now runs at once, as the clock may stand for long.
func (c *Stopped) AfterFunc(d time.Duration, f func()) Timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scheduled++
	t := &timer{c, c.now.Add(d), c.scheduled, f}
	if d <= 0 {
		c.running++
		go c.run(f)
		return t
	}
	at, _ := slices.BinarySearchFunc(c.timers, t, byTime)
	c.timers = slices.Insert(c.timers, at, t)
	return t
}

func byTime(a, b *timer) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.number, b.number)) }

func (c *Stopped) run(f func()) {
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running--; c.running == 0 && c.ended != nil {
		close(c.ended)
		c.ended = nil
	}
}

// Stop implements [Timer].
func (t *timer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	at, found := slices.BinarySearchFunc(t.clock.timers, t, byTime)
	if found {
		t.clock.timers = slices.Delete(t.clock.timers, at, at+1)
	}
	return found
}

// Next moves the clock to the time of the function that is due next, and returns when that has run. If none is due up to a
// limit, it moves the clock there and reports false. The clock never goes back.
func (c *Stopped) Next(limit time.Time) bool {
	t := c.take(limit)
	if t != nil {
		t.run()
	}
	return t != nil
}

// take moves the clock and removes the timer that is due then, if there is one.
func (c *Stopped) take(limit time.Time) *timer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.timers) == 0 || c.timers[0].at.After(limit) {
		if limit.After(c.now) {
			c.now = limit
		}
		return nil
	}
	t := c.timers[0]
	c.timers = slices.Delete(c.timers, 0, 1)
	c.now = t.at
	return t
}

// Wait returns when no function runs in a goroutine of the clock, or when the context ends.
func (c *Stopped) Wait(ctx context.Context) error {
	c.mu.Lock()
	if c.running == 0 {
		c.mu.Unlock()
		return ctx.Err()
	}
	if c.ended == nil {
		c.ended = make(chan struct{})
	}
	ended := c.ended
	c.mu.Unlock()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

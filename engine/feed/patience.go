// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"time"

	"github.com/handwerk-dev/handwerk/engine/backoff"
)

const (
	// lookAgain and lookAgainMost bound the wait before a feed that is not well looks again when
	// nothing tells it to: it doubles from the first to the second.
	lookAgain     = time.Second
	lookAgainMost = 10 * time.Second
	// wellAfter is how long a feed must run for the waits to begin anew.
	wellAfter = 30 * time.Second
)

// patience says when a feed that is not well looks again. The wait doubles with each look, whatever
// wakes the feed in between, and begins anew only when the feed ran for a while, or when something
// came for which it may have waited. The zero value is ready to use.
type patience struct {
	last time.Duration
	// due is when to look again, zero when not by itself.
	due time.Time
	// running is since when the feed runs, zero when it does not.
	running time.Time
}

// wait returns a channel that brings the time of the next look, nil when there is none.
func (p *patience) wait(again, running, news bool) <-chan time.Time {
	now := time.Now()
	switch {
	case running && p.running.IsZero():
		p.running = now
	case !running:
		if news || !p.running.IsZero() && now.Sub(p.running) >= wellAfter {
			p.last, p.due = 0, time.Time{}
		}
		p.running = time.Time{}
	}
	switch {
	case !again:
		p.due = time.Time{}
		return nil
	case !now.Before(p.due):
		last, in := backoff.Next(p.last, lookAgain, lookAgainMost)
		p.last, p.due = last, now.Add(in)
	}
	return time.After(p.due.Sub(now))
}

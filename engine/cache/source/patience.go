// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"time"

	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
)

const (
	// lookAgain and lookAgainMost bound the back-off of a source that is not well: it doubles from the first to the second.
	lookAgain     = time.Second
	lookAgainMost = 10 * time.Second
	// wellAfter is how long a source must run before its back-off starts over.
	wellAfter = 30 * time.Second
)

// patience is the back-off of a source that is not well. The wait doubles with each step. It starts over only when the source ran for a
// while, or after an event for which the source may wait. The zero value is ready to use.
type patience struct {
	last time.Duration
	// due is the time of the next step, zero for none.
	due time.Time
	// running is the time since which the source runs, zero when it does not.
	running time.Time
}

// wait returns a channel for the next step, nil if none is due. Prompted resets the back-off.
func (p *patience) wait(again, running, prompted bool) <-chan time.Time {
	now := time.Now()
	switch {
	case running && p.running.IsZero():
		p.running = now
	case !running:
		if prompted || !p.running.IsZero() && now.Sub(p.running) >= wellAfter {
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

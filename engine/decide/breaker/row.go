// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package breaker

import "time"

const (
	// rowMost is how often in a row a handler may ask to run at once.
	rowMost = 10
	// Slow is the wait for each further run.
	Slow = time.Second
)

// Streak counts how often in a row a handler has asked to run at once.
type Streak uint8

// Ask counts a request of the handler to run after a time, at once or not. It returns the time after which the
// handler runs. Slowed: for the first time in the row this is longer than requested.
func (r Streak) Ask(after time.Duration, atOnce bool) (next Streak, wait time.Duration, slowed bool) {
	switch {
	case !atOnce:
		return 0, after, false
	case r < rowMost:
		return r + 1, after, false
	}
	return rowMost + 1, Slow, r == rowMost
}

// carried is how many reconciles inherit the versions that woke an earlier one.
const carried = 10

// Woken has the versions that last woke an object. Later reconciles inherit them while they finish the work of the
// woken reconcile.
type Woken struct {
	Versions   []Version
	reconciles uint8
}

// Next returns the versions that woke the next reconcile: the new ones, or if there are none, the inherited ones.
func (w Woken) Next(come []Version) Woken {
	switch {
	case len(come) > 0:
		return Woken{Versions: come}
	case w.reconciles == carried:
		return Woken{}
	}
	w.reconciles++
	return w
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package clock tells the time of a cluster in memory: that of the machine, or one that stands still until it is advanced.
package clock

import "time"

// Clock tells the time, and runs functions later.
type Clock interface {
	Now() time.Time
	// AfterFunc runs a function in its own goroutine after a duration, unless the timer is stopped before.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is the timer of a function.
type Timer interface {
	// Stop keeps the function from running, and reports whether it did.
	Stop() bool
}

// Real is the clock of the machine.
type Real struct{}

// Now returns the time of the machine.
func (Real) Now() time.Time { return time.Now() }

// AfterFunc implements [Clock].
func (Real) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

const (
	// breakerBurst is how many writing passes in quick succession an object may have.
	breakerBurst = 30
	// breakerRefill is the time after which one more is allowed.
	breakerRefill = 2 * time.Second
	// breakerPause is how long an object that used them up rests before it is probed again.
	breakerPause = time.Minute
)

// breaker stops an object whose passes write again and again: its handlers undo each other, or
// somebody else's controller and this one do. Passes that write nothing are free.
type breaker struct {
	spent int
	last  time.Time
	until time.Time
}

// wrote counts a writing pass and reports whether it was one too many.
func (b *breaker) wrote(now time.Time) (opened bool) {
	if refilled := int(now.Sub(b.last) / breakerRefill); refilled > 0 {
		b.spent = max(0, b.spent-refilled)
		b.last = now
	}
	b.spent++
	if b.spent <= breakerBurst {
		return false
	}
	b.until = now.Add(breakerPause)
	// The probe may write once; a second pass opens it again. The pause refills nothing.
	b.spent, b.last = breakerBurst-1, b.until
	return true
}

// rests returns how long the object is still held back.
func (b *breaker) rests(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }

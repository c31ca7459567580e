// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// come reports whether a time has come. The zero time never does.
func come(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// Appoint returns the entry of a handler that is to run at a time from its object; zero for none. If the time has not
// come, work that was begun for an earlier time ends, and so does a failure for good.
func (e Entry) Appoint(at, now time.Time) Entry {
	if come(at, now) {
		return e
	}
	if e.Try.Cause == dsl.Timer {
		e.Try = Record{}
	}
	if e.FailedFor == dsl.Timer {
		e.FailedFor = ""
	}
	return e
}

// Arrived reports whether a handler is to run because a time from its object has come: it has not run for this time or a
// later one. After a failure for good it is to run again if its view has changed, because the reason may be mended. View
// is the digest of its view.
func (e Entry) Arrived(at, now time.Time, view string) bool {
	return come(at, now) && (at.After(e.At) || e.FailedFor == dsl.Timer && e.Handled != view)
}

// lastAppointment returns the part of the entry that is about the time from its object. What the handler failed for good with is a
// part of it: with another view it runs again.
func (e Entry) lastAppointment() Entry {
	if e.FailedFor != dsl.Timer {
		return Entry{At: e.At}
	}
	return Entry{At: e.At, FailedFor: e.FailedFor, ViewName: e.ViewName, Handled: e.Handled}
}

// at identifies the time for which the handler ran; empty for none.
func (e Entry) at() string {
	if e.At.IsZero() {
		return ""
	}
	return e.At.Format(time.RFC3339Nano)
}

// RanFor notes that the handler ran to its end for a time from its object.
func (e Entry) RanFor(at time.Time) Entry {
	if at.After(e.At) {
		e.At = at.UTC().Round(0)
	}
	return e
}

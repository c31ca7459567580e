// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// come reports whether a time has come. The zero time never does.
func come(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// Appoint returns the entry for the time that the object gives the handler; at is zero if the object gives none. If the
// time has not come, the new entry has neither an attempt for an earlier time nor a failure for good.
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

// Arrived reports whether a handler is due because a time from its object has come: it has not run for this time or a
// later one. After a failure for good it is due if its view has changed, because the reason may be fixed. View is the
// digest of its view.
func (e Entry) Arrived(at, now time.Time, view string) bool {
	return come(at, now) && (at.After(e.At) || e.FailedFor == dsl.Timer && e.Handled != view)
}

// lastAppointment returns the part of the entry about the time from its object. After a failure for good it has the
// view, because with another view the handler runs again.
func (e Entry) lastAppointment() Entry {
	if e.FailedFor != dsl.Timer {
		return Entry{At: e.At}
	}
	return Entry{At: e.At, FailedFor: e.FailedFor, ViewName: e.ViewName, Handled: e.Handled}
}

// at formats the time for which the handler ran; empty for none.
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

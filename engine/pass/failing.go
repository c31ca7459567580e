// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"fmt"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
)

// ManyFailures is the failed attempt from which on a handler is said to fail where its object is looked
// at: the first ones are often over in a moment.
const ManyFailures = 3

// Fails reports whether a record is that of a handler that failed for good, or many times, itself or by a sub-handler.
func Fails(r book.Record) bool { return r.Failed || !r.Done && r.Worst() >= ManyFailures }

// Complaint says, for an Event, why the handler fails and what becomes of the object. Gone: the object is gone from
// sight, and nothing holds it.
func (j *Job) Complaint(gone bool) (reason, note string) {
	reason, note = Retried, fmt.Sprintf("Handler %s keeps failing, and is tried again: %s", j.Reader.ID, j.Record.Message)
	if j.Record.Failed {
		times := "1 attempt"
		if j.Record.Attempts != 1 {
			times = fmt.Sprintf("%d attempts", j.Record.Attempts)
		}
		reason, note = Failed, fmt.Sprintf("Handler %s failed for good after %s: %s", j.Reader.ID, times, j.Record.Message)
	}
	if j.Cause == dsl.Delete && !j.Reader.Release && !gone {
		reason, note = "DeletionHeld", "Deletion is held: "+strings.ToLower(note[:1])+note[1:]
	}
	return reason, note
}

// Record is a handler's as the pass leaves it; the entry is its in the book. Progress of one that has nothing to do any
// more is over, but not that it failed for good.
func (js Jobs) Record(r book.Reader, e book.Entry) book.Record {
	if j := js.Of(r); j != nil {
		return j.Record
	}
	if e.Try.Failed || e.Lost == "" {
		return book.Record{Failed: e.Try.Failed, Message: e.Try.Message}
	}
	return book.Record{Failed: true, Message: "it failed for good"}
}

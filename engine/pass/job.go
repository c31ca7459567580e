// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/collision"
	"github.com/handwerk-dev/handwerk/engine/machine"
)

// Job is a handler with a cause in a pass.
type Job struct {
	Reader book.Reader
	Cause  dsl.Cause
	// Entry is the handler's in the book as the pass found it, begun for the cause. Record is its try, as far as it
	// has come.
	Entry  book.Entry
	Record book.Record
	Ran    bool
	// Failed is the error of a sub-handler that failed in its attempt, nil for none.
	Failed error
	// Refused: the server did not take what it wants.
	Refused bool
	// Soon: it is run again because it asked for that at once. Again is what it asks for now, nil for nothing.
	Soon  bool
	Again *time.Duration
	// Machine is its attempt where the handler is a machine, nil before it and for others.
	Machine *machine.Run
	// Warned: its attempt has reported a warning of its own. Logged: the log has one line for all that wait for this.
	Warned, Logged bool
	// Wants is what the handler asked for in this pass; Offers: conditions of its own are among it.
	Wants  *dsl.Patch
	Offers bool
	// Blind: it ran before the whole object was read, and fields that the cache does not show may have changed in between.
	Blind bool
	// Saw and Left are digests of the handler's view, before it ran and with its own changes.
	Saw, Left string
}

// Begin returns the job of a handler that is to run for a cause.
func Begin(r book.Reader, c dsl.Cause, e book.Entry, f book.Facts) *Job {
	j := &Job{Reader: r, Cause: c, Entry: e.Begin(c, f)}
	j.Record = j.Entry.Try
	return j
}

// Holds reports whether an object is, in what the handler looks at, as it was when it ran, or as it left it.
func (j *Job) Holds(at *book.Look) bool {
	digest := at.Digest(j.Reader.View)
	return digest == j.Saw || digest == j.Left
}

// Asks reports whether the handler wants anything of the object.
func (j *Job) Asks() bool { return j.Wants != nil && !j.Wants.Empty() }

// Through reports whether the handler is done, and not because it has failed for good.
func (j *Job) Through() bool { return j.Record.Done && !j.Record.Failed }

// Void takes back what the handler did, as far as the book knows, and returns its entry.
func (j *Job) Void() book.Entry {
	e := j.Entry.Vain()
	j.Wants, j.Ran, j.Record = nil, false, e.Try
	return e
}

// retries reports whether the job is to be tried again for what is stored.
func (j *Job) retries() bool {
	if j.Record.Done || !j.Ran && j.Record.Attempts == 0 && !j.Record.Waiting {
		return false
	}
	return j.Cause == dsl.Delete || j.Reader.Stores() && j.Cause.Lasting()
}

// Jobs are those of a pass, in the order of their handlers; each handler has one at most.
type Jobs []*Job

// Of returns what a handler has to do, nil when nothing, or when the pass has not come to it.
func (js Jobs) Of(r book.Reader) *Job {
	i := slices.IndexFunc(js, func(j *Job) bool { return j.Reader.Handler == r.Handler })
	if i < 0 {
		return nil
	}
	return js[i]
}

// Open reports whether some handler that is to see the object off is not finished. Gone: the object is gone from
// sight.
func (js Jobs) Open(gone bool) bool {
	return slices.ContainsFunc(js, func(j *Job) bool {
		return (j.Cause == dsl.Delete || gone && j.Cause == dsl.Event) && !j.Record.Done
	})
}

// Through reports whether all are.
func (js Jobs) Through() bool {
	return !slices.ContainsFunc(js, func(j *Job) bool { return !j.Through() })
}

// Retries reports whether some job is to be tried again for what is stored. Latest is when the latest of those is that
// were tried in this pass.
func (js Jobs) Retries() (some bool, latest time.Time) {
	for _, j := range js {
		if !j.retries() {
			continue
		}
		some = true
		if j.Ran && (!j.Record.Waiting || j.Record.Parts != nil) && j.Record.Due.After(latest) {
			latest = j.Record.Due
		}
	}
	return some, latest
}

// Asking are those whose handlers want something of the object.
func (js Jobs) Asking() (out Jobs) {
	for _, j := range js {
		if j.Asks() {
			out = append(out, j)
		}
	}
	return out
}

// AskedBy reports whether these are the handlers that want something of the object, and there is one.
func (js Jobs) AskedBy(handlers []*dsl.Handler) bool {
	asking := js.Asking()
	return len(asking) == 1 && len(handlers) == 1 && asking[0].Reader.Handler == handlers[0]
}

// Turns says how the handlers fare that have something to do in a pass before a job.
func (js Jobs) Turns(before *Job) []collision.Turn {
	out := make([]collision.Turn, 0, len(js))
	for _, j := range js {
		if j != before {
			out = append(out, collision.Turn{
				Handler: j.Reader.ID, Step: j.Entry.Try.Past(), Ran: j.Ran, Through: j.Through(), Waits: j.Record.Waiting,
			})
		}
	}
	return out
}

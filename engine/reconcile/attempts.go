// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/reconcile/machine"
)

// Attempt is a handler with a cause in a reconcile.
type Attempt struct {
	Reader progress.Handler
	Cause  dsl.Cause
	// Entry is the handler's in the progress as the reconcile found it, begun for the cause. Record is its try, as far as it
	// has come.
	Entry  progress.Entry
	Record progress.Record
	// At is the time from its object for which the handler runs; zero for none.
	At time.Time
	// Wants is what the handler asked for in this reconcile. Again is when it asks to run again, nil for nothing.
	Wants *dsl.Patch
	Again *time.Duration
	// Failed is the error of a sub-handler that failed in its attempt, nil for none.
	Failed error
	// Machine is the result of its attempt where the handler is a machine, nil before it and for others.
	Machine *machine.Result
	// Saw and Left are digests of the handler's view, before it ran and with its own changes.
	Saw, Left string
	// Ran: it ran in this reconcile. Voided: what it did was not written, and it runs again. Refused: the server did not take what it
	// wants.
	Ran, Voided, Refused bool
	// Soon: it is run again because it asked for that at once. Slowed: it asks for that again, and has to wait.
	Soon, Slowed bool
	// Warned: its attempt has reported a warning of its own. Logged: the log has one line for all that wait for this.
	Warned, Logged bool
	// Offers: conditions of its own are among what it wants.
	Offers bool
	// Barred: it comes after a handler that has failed for good in the object's deletion and lets the object go, so it runs no more.
	Barred bool
}

// Begin returns the job of a handler that is to run for a cause.
func Begin(r progress.Handler, c dsl.Cause, e progress.Entry, f progress.Facts) *Attempt {
	j := &Attempt{Reader: r, Cause: c, Entry: e.Begin(c, f)}
	j.Record = j.Entry.Try
	return j
}

// Holds reports whether an object is, in what the handler looks at, as it was when it ran, or as it left it.
func (j *Attempt) Holds(at *progress.Look) bool {
	digest := at.Digest(j.Reader.View)
	return digest == j.Saw || digest == j.Left
}

// Asks reports whether the handler wants anything of the object.
func (j *Attempt) Asks() bool { return j.Wants != nil && !j.Wants.Empty() }

// Through reports whether the handler is done, and not because it has failed for good.
func (j *Attempt) Through() bool { return j.Record.Done && !j.Record.Failed }

// Void takes back what the handler did, as far as the progress knows, and returns its entry.
func (j *Attempt) Void() progress.Entry {
	e := j.Entry.WithoutEffect()
	j.Wants, j.Ran, j.Voided, j.Record = nil, false, true, e.Try
	return e
}

// Attempts are those of a reconcile, in the order of their handlers; each handler has one at most.
type Attempts []*Attempt

// Of returns what a handler has to do, nil when nothing, or when the reconcile has not come to it.
func (js Attempts) Of(r progress.Handler) *Attempt {
	i, found := slices.BinarySearchFunc(js, r.Place, func(j *Attempt, place int) int { return cmp.Compare(j.Reader.Place, place) })
	for ; found && i < len(js); i++ {
		if js[i].Reader.Handler == r.Handler {
			return js[i]
		}
	}
	return nil
}

// Through reports whether all are.
func (js Attempts) Through() bool {
	return !slices.ContainsFunc(js, func(j *Attempt) bool { return !j.Through() })
}

// Asking are those whose handlers want something of the object.
func (js Attempts) Asking() (out Attempts) {
	for _, j := range js {
		if j.Asks() {
			out = append(out, j)
		}
	}
	return out
}

// askedBy reports whether these are the handlers that want something of the object, and there is one.
func (js Attempts) askedBy(handlers []*dsl.Handler) bool {
	asking := js.Asking()
	return len(asking) == 1 && len(handlers) == 1 && asking[0].Reader.Handler == handlers[0]
}

// Turns says how the handlers fare that have something to do in a reconcile before a job.
func (js Attempts) Turns(before *Attempt) []collision.Turn {
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

// manyFailures is the failed attempt from which on a handler is said to fail where its object is looked
// at: the first ones are often over in a moment.
const manyFailures = 3

// Fails reports whether a record is that of a handler that failed for good, or many times, itself or by a sub-handler.
func Fails(r progress.Record) bool { return r.Failed || !r.Done && r.Worst() >= manyFailures }

// complaint says, for an Event, why the handler fails and what becomes of the object. Gone: the object is gone from
// sight, and nothing holds it.
func (a Attempted) complaint(gone bool) (reason, note string) {
	reason, note = Retried, fmt.Sprintf("Handler %s keeps failing, and is tried again: %s", a.Handler.ID, a.Trouble.After.Message)
	if a.Trouble.After.Failed {
		times := "1 attempt"
		if a.Trouble.After.Attempts != 1 {
			times = fmt.Sprintf("%d attempts", a.Trouble.After.Attempts)
		}
		reason, note = Failed, fmt.Sprintf("Handler %s failed for good after %s: %s", a.Handler.ID, times, a.Trouble.After.Message)
	}
	if a.Cause == dsl.Delete && !a.Handler.Release && !gone {
		reason, note = "DeletionHeld", "Deletion is held: "+strings.ToLower(note[:1])+note[1:]
	}
	return reason, note
}

// Record is a handler's as the reconcile leaves it; the entry is its in the progress. Progress of one that has nothing to do any
// more is over, but not that it failed for good.
func (js Attempts) Record(r progress.Handler, e progress.Entry) progress.Record {
	if j := js.Of(r); j != nil {
		return j.Record
	}
	if e.Try.Failed || e.FailedFor == "" {
		return progress.Record{Failed: e.Try.Failed, Message: e.Try.Message}
	}
	return progress.Record{Failed: true, Message: "it failed for good"}
}

// stand is how the reconcile leaves its object with these handlers, and why. Held: its deletion waits.
func (p *run) stand(st State, readers []progress.Handler, held bool) ops.Stand {
	out := ops.Stand{Standing: ops.Ready}
	for _, reader := range readers {
		open := p.unfinished(st, reader)
		if open.Standing == "" {
			continue
		}
		out.Open = append(out.Open, open)
		if out.Standing != ops.Failing && !open.Blocked {
			out.Standing = open.Standing
		}
	}
	for _, d := range p.Rules.Daemons {
		if failed := p.memory.Filters.Of(d.Handler); failed != "" && !p.resourceWide() {
			out.Open, out.Standing = append(out.Open, ops.Open{Handler: d.ID, Standing: ops.Failing, Reason: why.WhenFails.Brief(failed)}), ops.Failing
		}
	}
	if held && !st.Searched {
		out.Open = append(out.Open, ops.Open{Standing: ops.Waits, Reason: "waits for its children to be gone"})
	}
	if held {
		out.Standing = ops.Held
	}
	return out
}

// unfinished says why a handler is not through; its standing is empty where it is, or has nothing to do.
func (p *run) unfinished(st State, reader progress.Handler) ops.Open {
	r, out := st.Jobs.Record(reader, p.ledger.Entry(reader)), ops.Open{Handler: reader.ID, Standing: ops.Failing}
	blind := p.memory.Filters.Of(reader.Handler)
	switch {
	case blind != "":
		out.Reason = why.WhenFails.Brief(blind)
	case r.Failed:
		out.Reason = "failed for good: " + r.Message
	case !r.Done && r.Worst() > 0 && (!r.Waiting || r.Parts != nil):
		out.Reason = "is tried again: " + r.Message
	case r.Waiting:
		out.Standing, out.Reason = ops.Waits, waitsFor(r.Message)
		j := st.Jobs.Of(reader)
		out.Logged = j != nil && j.Logged
	default:
		j := st.Jobs.Of(reader)
		if j == nil || j.Ran || r.Done {
			return ops.Open{}
		}
		if paused := slices.IndexFunc(st.Why, func(w Why) bool { return w.Handler == reader.ID && w.Reason == why.Paused }); paused >= 0 {
			out.Standing, out.Reason = ops.Paused, "does not run: "+st.Why[paused].Detail
			return out
		}
		other := p.blocker(st, reader.Handler)
		if other == "" {
			return ops.Open{}
		}
		out.Standing, out.Reason, out.Blocked = ops.Waits, why.Blocked.Brief(other), true
	}
	return out
}

// waitsFor is the message of a wait, as the rest of a line.
func waitsFor(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if what, is := strings.CutPrefix(message, "waiting for "); is {
		return "waits for " + what
	}
	return "waits: " + message
}

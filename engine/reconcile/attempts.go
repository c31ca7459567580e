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
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
	"github.com/handwerk-dev/handwerk/engine/reconcile/machine"
)

// Attempt is a handler that is due in a reconcile, with its cause and outcome.
type Attempt struct {
	Reader progress.Handler
	Cause  dsl.Cause
	// Entry is the handler's progress at the beginning of the attempt. Record is its present state.
	Entry  progress.Entry
	Record progress.Record
	// At is the time from its object for which the handler runs; zero for none.
	At time.Time
	// Wants is the handler's patch in this reconcile. Again is the time after which it asks to run again, nil for never.
	Wants *dsl.Patch
	Again *time.Duration
	// Failed is the error of a sub-handler that failed in the attempt, nil for none.
	Failed error
	// Machine is the result of a machine's attempt; nil before it, and for other handlers.
	Machine *machine.Result
	// Saw and Left are digests of the handler's view, before it ran and after its own changes.
	Saw, Left string
	// Ran: it ran in this reconcile. Voided: its changes were not written, and it runs again. Rejected: the server
	// rejected its changes.
	Ran, Voided, Rejected bool
	// Soon: it runs because it asked to run at once. Slowed: it asks for that again, and has to wait.
	Soon, Slowed bool
	// Warned: the handler has sent a warning of its own. Logged: one log line stands for all that wait for this.
	Warned, Logged bool
	// Offers: its patch offers conditions.
	Offers bool
	// NeverRuns: it never runs, because it comes after a handler that failed for good in the deletion and releases the
	// object.
	NeverRuns bool
}

// Begin returns the attempt of a handler that is due for a cause.
func Begin(r progress.Handler, c dsl.Cause, e progress.Entry, f progress.Facts) *Attempt {
	j := &Attempt{Reader: r, Cause: c, Entry: e.Begin(c, f)}
	j.Record = j.Entry.Try
	return j
}

// Holds reports whether the handler's view of an object is the same as before it ran, or after its own changes.
func (j *Attempt) Holds(at *progress.Snapshot) bool {
	digest := at.Digest(j.Reader.View)
	return digest == j.Saw || digest == j.Left
}

// Asks reports whether the handler's patch has changes.
func (j *Attempt) Asks() bool { return j.Wants != nil && !j.Wants.Empty() }

// Through reports whether the handler is done and has not failed for good.
func (j *Attempt) Through() bool { return j.Record.Done && !j.Record.Failed }

// Void drops the outcome of the attempt, and returns the handler's entry without it.
func (j *Attempt) Void() progress.Entry {
	e := j.Entry.WithoutEffect()
	j.Wants, j.Ran, j.Voided, j.Record = nil, false, true, e.Try
	return e
}

// Attempts are the attempts of a reconcile, in the order of their handlers. Each handler has at most one.
type Attempts []*Attempt

// Of returns a handler's attempt, nil if it is not due or not decided yet.
func (js Attempts) Of(r progress.Handler) *Attempt {
	i, found := slices.BinarySearchFunc(js, r.Place, func(j *Attempt, place int) int { return cmp.Compare(j.Reader.Place, place) })
	for ; found && i < len(js); i++ {
		if js[i].Reader.Handler == r.Handler {
			return js[i]
		}
	}
	return nil
}

// Through reports whether all are through.
func (js Attempts) Through() bool {
	return !slices.ContainsFunc(js, func(j *Attempt) bool { return !j.Through() })
}

// Asking returns the attempts with changes of the object.
func (js Attempts) Asking() (out Attempts) {
	for _, j := range js {
		if j.Asks() {
			out = append(out, j)
		}
	}
	return out
}

// askedBy reports whether exactly one attempt wants changes of the object, and its handler is the only one in handlers.
func (js Attempts) askedBy(handlers []*dsl.Handler) bool {
	asking := js.Asking()
	return len(asking) == 1 && len(handlers) == 1 && asking[0].Reader.Handler == handlers[0]
}

// States returns how the attempts other than one have ended.
func (js Attempts) States(before *Attempt) []collision.HandlerState {
	out := make([]collision.HandlerState, 0, len(js))
	for _, j := range js {
		if j != before {
			out = append(out, collision.HandlerState{
				Handler: j.Reader.ID, Step: j.Entry.Try.DoneParts(), Ran: j.Ran, Succeeded: j.Through(), Waiting: j.Record.Waiting,
			})
		}
	}
	return out
}

// manyFailures is the number of failed attempts from which a handler counts as failing: the first failures are often
// over in a moment.
const manyFailures = 3

// Fails reports whether a handler has failed for good, or many times, itself or in a sub-handler.
func Fails(r progress.Record) bool { return r.Failed || !r.Done && r.Failures() >= manyFailures }

// complaint returns the Event about a handler that fails, and its effect on the object. Gone: the object is gone, and
// nothing holds it.
func (a Ended) complaint(gone bool) (reason, note string) {
	reason, note = conditions.HandlerFailing, fmt.Sprintf("Handler %s keeps failing, and is tried again: %s", a.Handler.ID, a.Trouble.After.Message)
	if a.Trouble.After.Failed {
		times := "1 attempt"
		if a.Trouble.After.Attempts != 1 {
			times = fmt.Sprintf("%d attempts", a.Trouble.After.Attempts)
		}
		reason, note = conditions.HandlerFailed, fmt.Sprintf("Handler %s failed for good after %s: %s", a.Handler.ID, times, a.Trouble.After.Message)
	}
	if a.Cause == dsl.Delete && !a.Handler.Release && !gone {
		reason, note = "DeletionHeld", "Deletion is held: "+strings.ToLower(note[:1])+note[1:]
	}
	return reason, note
}

// Record returns a handler's record at the end of the reconcile; the entry is its progress. Without an attempt, only the
// fact that it failed for good remains.
func (js Attempts) Record(r progress.Handler, e progress.Entry) progress.Record {
	if j := js.Of(r); j != nil {
		return j.Record
	}
	if e.Try.Failed || e.FailedFor == "" {
		return progress.Record{Failed: e.Try.Failed, Message: e.Try.Message}
	}
	return progress.Record{Failed: true, Message: "it failed for good"}
}

// health returns the health of the object with these handlers, and the reasons. Held: its deletion waits.
func (p *run) health(st State, readers []progress.Handler, held bool) ops.ObjectHealth {
	out := ops.ObjectHealth{Health: ops.Ready}
	for _, reader := range readers {
		open := p.unfinished(st, reader)
		if open.Health == "" {
			continue
		}
		out.Open = append(out.Open, open)
		if out.Health != ops.Failing && !open.Blocked {
			out.Health = open.Health
		}
	}
	for _, d := range p.Rules.Daemons {
		if failed := p.memory.Filters.Of(d.Handler); failed != "" {
			out.Open, out.Health = append(out.Open, ops.Open{Handler: d.ID, Health: ops.Failing, Reason: why.WhenFails.Brief(failed)}), ops.Failing
		}
	}
	if held && !st.Searched {
		out.Open = append(out.Open, ops.Open{Health: ops.Waits, Reason: "waits for its children to be gone"})
	}
	if held {
		out.Health = ops.Held
	}
	return out
}

// unfinished returns why a handler is not through. Its standing is empty if the handler is through, or has nothing to
// do.
func (p *run) unfinished(st State, reader progress.Handler) ops.Open {
	r, out := st.Attempts.Record(reader, p.progress.Entry(reader)), ops.Open{Handler: reader.ID, Health: ops.Failing}
	blind := p.memory.Filters.Of(reader.Handler)
	switch {
	case blind != "":
		out.Reason = why.WhenFails.Brief(blind)
	case r.Failed:
		out.Reason = "failed for good: " + r.Message
	case !r.Done && r.Failures() > 0 && (!r.Waiting || r.Parts != nil):
		out.Reason = "is tried again: " + r.Message
	case r.Waiting:
		out.Health, out.Reason = ops.Waits, waitsFor(r.Message)
		j := st.Attempts.Of(reader)
		out.Logged = j != nil && j.Logged
	default:
		j := st.Attempts.Of(reader)
		if j == nil || j.Ran || r.Done {
			return ops.Open{}
		}
		if paused := slices.IndexFunc(st.Why, func(w Why) bool { return w.Handler == reader.ID && w.Reason == why.Paused }); paused >= 0 {
			out.Health, out.Reason = ops.Paused, "does not run: "+st.Why[paused].Detail
			return out
		}
		other := p.blocker(st, reader.Handler)
		if other == "" {
			return ops.Open{}
		}
		out.Health, out.Reason, out.Blocked = ops.Waits, why.Blocked.Brief(other), true
	}
	return out
}

// waitsFor returns the message of a wait as part of a line.
func waitsFor(message string) string {
	message = strings.Join(strings.Fields(message), " ")
	if what, is := strings.CutPrefix(message, "waiting for "); is {
		return "waits for " + what
	}
	return "waits: " + message
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/children"
)

// Ending is what is known at the end of a pass of the handlers that are to see its object off.
type Ending struct {
	// Gone: the object is gone from sight. Deleted: it is gone, or is being deleted.
	Gone, Deleted bool
	// Finalizer: the object has the operator's. Wanted: a delete handler holds it.
	Finalizer, Wanted bool
	// Open: some are not finished. Failed: one has failed for good, and keeps a deletion from going on. Unsure:
	// whether one sees the object cannot be told.
	Open, Failed, Unsure bool
}

// Finalization is what becomes of an object and its finalizer.
type Finalization struct {
	// Add and Remove say what to do with the finalizer. Of an object that is gone from sight alone, removing takes off
	// all that the operator has left on it.
	Add, Remove bool
	// Finalized: delete handlers are done. Held: one keeps the object from being deleted, and will not let it go by itself.
	Finalized, Held bool
}

// Settle decides what becomes of the object.
func Settle(e Ending) Finalization {
	switch {
	case e.Gone:
		finalized := !e.Open && !e.Unsure
		return Finalization{Finalized: finalized, Remove: finalized && !e.Failed}
	case e.Deleted:
		held := e.Unsure || e.Failed
		return Finalization{Finalized: !e.Open && !held, Remove: !e.Open && !held, Held: held}
	}
	return Finalization{Add: e.Wanted && !e.Finalizer, Remove: !e.Wanted && e.Finalizer}
}

// Rerun names the handlers that the next pass runs for children that others have written in this one, after them.
func (js Jobs) Rerun(readers []book.Reader, writes []children.Write) (out []string) {
	for _, w := range writes {
		for _, r := range readers {
			since := js[min(w.Turn, len(js)):].Of(r)
			if w.Child && r.ID != w.Handler && r.On(dsl.Child) && (since == nil || !since.Ran) && !slices.Contains(out, r.ID) {
				out = append(out, r.ID)
			}
		}
	}
	return out
}

// Driven reports whether others set the pace of all that the pass wrote: the time, or children and related objects (see
// [breaker.Wake]), after which it changed only the object's status. That is no loop: a heartbeat follows the clock, and a status
// follows the Pods of a roll-out.
func (js Jobs) Driven(writes []children.Write, paced bool) bool {
	return !slices.ContainsFunc(js, func(j *Job) bool {
		if paced && j.Cause.FromOthers() {
			return j.writes(writes) || j.Wants != nil && len(j.Wants.Object)+len(j.Wants.Transforms) > 0
		}
		return !j.timed() && j.Ran && (j.writes(writes) || j.Asks())
	})
}

// Timed reports whether the pass wrote only because a time had come.
func (js Jobs) Timed(writes []children.Write) bool {
	return !slices.ContainsFunc(js, func(j *Job) bool { return !j.timed() && j.Ran && (j.writes(writes) || j.Asks()) })
}

// timed reports whether the handler runs because a time has come, and not because it asked to run at once.
func (j *Job) timed() bool { return j.Cause.FromClock() && !j.Soon }

// writes reports whether some of these writes are the handler's.
func (j *Job) writes(all []children.Write) bool {
	return slices.ContainsFunc(all, func(w children.Write) bool { return w.Handler == j.Reader.ID })
}

// Changers names the handlers that have changed the object or its children.
func (js Jobs) Changers(writes []children.Write) (out []string) {
	for _, j := range js {
		if j.Asks() || slices.ContainsFunc(writes, func(w children.Write) bool { return w.Child && w.Handler == j.Reader.ID }) {
			out = append(out, j.Reader.ID)
		}
	}
	return out
}

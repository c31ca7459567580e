// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// rerun is the value of Entry.Handled for a handler that runs once more whatever its view is. It equals no digest.
const rerun = "?"

// Entry is a handler's entry in progress. Fields with a JSON name are stored.
type Entry struct {
	// ViewName is the name of the view that Handled is a digest of.
	ViewName string `json:"of,omitempty"`
	// Handled is the digest of the view that the handler handled last, by success or by failing for good; empty if
	// it has handled nothing.
	Handled string `json:"seen,omitempty"`
	// Unmet is the digest of the view when the handler's when last did not hold. It is empty if it would equal Handled, or
	// if the handler has succeeded since.
	Unmet string `json:"unmet,omitempty"`
	// FailedFor is the cause if the handler failed for good with Handled; empty after a success.
	FailedFor dsl.Cause `json:"lost,omitempty"`
	// Try is the handler's current work, or the work that it failed for good with.
	Try Record `json:"try,omitzero"`
	// Deletion is the moment of the deletion that Try is for; empty if it is for none.
	Deletion string `json:"deletion,omitempty"`
	// At is the latest time for which the handler ran to its end, for a handler with a time from its object; see
	// dsl.Timing.At. It is zero for others.
	At time.Time `json:"at,omitzero"`
	// AsFound: Handled is the state in which the handler found the object. The handler has not run since.
	AsFound bool `json:"met,omitempty"`
	// NewHandler: the handler is new to the object, and its filters may not match yet. [Entry.Introduce] returns its
	// first state. NewObject: the object was new, too, so the handler runs for create.
	NewHandler, NewObject bool `json:"-"`
	// Implied: the next process computes the same without the text, so this alone is not stored.
	Implied bool `json:"-"`
	// OldDropped: the old state is not kept, even if the text has one.
	OldDropped bool `json:"-"`
	// Old is the state that the handler handled last, for handlers that use it. It is nil if it is not kept, or if the
	// text of the progress has it. OldUnmet is the same for Unmet.
	Old, OldUnmet map[string]any `json:"-"`
}

// rests reports whether the entry only has the view that its handler handled or found last.
func (e Entry) rests() bool {
	return e.At.IsZero() && e.FailedFor == "" && e.Deletion == "" && e.Unmet == "" && e.Old == nil && !e.NewHandler && !e.NewObject && !e.Implied && !e.OldDropped && e.Try == Record{}
}

// Facts are the inputs for evaluating an entry.
type Facts struct {
	// Deletion is the moment of the object's deletion; empty while it lives.
	Deletion string
	// Now is the digest of the handler's view; Present says whether some of the view exists.
	Now     string
	Present bool
	// First: this process has not finished a reconcile over the object yet.
	First bool
	// New: the object is new, and was not handled by an earlier process.
	New bool
}

// WantsOld reports whether the old state is kept for the handler.
func WantsOld(h *dsl.Handler) bool { return h.Stores() && h.On(dsl.Update) && !h.NoOld }

// Due returns the cause for which the handler is due by its entry; empty for none.
func (e Entry) Due(h *dsl.Handler, f Facts) dsl.Cause {
	switch {
	case h.On(dsl.Event):
		return e.pending()
	case f.Deletion != "":
		return e.dueInDeletion(h, f)
	case h.Stores():
		if c := e.dueByEdge(h, f); c != "" {
			return c
		}
	case h.Level():
		if c := e.dueByLevel(f); c != "" {
			return c
		}
	}
	switch c := e.pending(); {
	case goesOn(h, c):
		return c
	case f.First && !f.New && f.Present && h.On(dsl.Resume) && !h.Level():
		return dsl.Resume
	}
	return ""
}

// goesOn reports whether begun work for a cause continues although stored state does not require it.
func goesOn(h *dsl.Handler, c dsl.Cause) bool {
	return c != "" && !c.Lasting() && (h.On(c) || c == dsl.Again)
}

// dueInDeletion returns the cause in a deletion. A success is final for that deletion, and so is the end of the
// namespace. A failure for good is final while the view is the same: a person changes it to say that the reason is
// fixed.
func (e Entry) dueInDeletion(h *dsl.Handler, f Facts) dsl.Cause {
	if !h.On(dsl.Delete) {
		return e.resumedInDeletion(h, f)
	}
	if e.DeleteDone(f.Deletion) && (!e.Try.Failed || e.Try.Ended || e.Try.View == f.Now) {
		return ""
	}
	return dsl.Delete
}

// resumedInDeletion returns a resume for handlers with Deleted: they run once in a process for an object that was being
// deleted before.
func (e Entry) resumedInDeletion(h *dsl.Handler, f Facts) dsl.Cause {
	open := e.pending() == dsl.Resume && e.Deletion == f.Deletion
	if h.Deleted && (open || f.First && !f.New && f.Present) {
		return dsl.Resume
	}
	return ""
}

// DeleteDone reports whether the handler is done with a deletion, by success or by failing for good.
func (e Entry) DeleteDone(deletion string) bool {
	return e.Try.Cause == dsl.Delete && e.Try.Done && e.Deletion == deletion
}

func (e Entry) dueByEdge(h *dsl.Handler, f Facts) dsl.Cause {
	switch {
	case e.NewHandler:
		return ""
	case e.Handled == "" && h.On(dsl.Create) && f.Present:
		return dsl.Create
	case e.Handled == "" || !e.differs(f.Now):
		return ""
	case h.On(dsl.Update):
		return dsl.Update
	case (e.FailedFor == dsl.Create || e.FailedFor == dsl.Again && h.On(dsl.Create)) && f.Present:
		return dsl.Create // the reason of the failure may be fixed
	}
	return ""
}

// differs reports whether the view differs from the one that the handler handled last, or from the one for which its
// when last did not hold. A view for which the handler has to undo a begun change differs, too.
func (e Entry) differs(now string) bool {
	return e.Handled != now || e.Unmet != "" && e.Unmet != now || e.halfway(now)
}

func (e Entry) dueByLevel(f Facts) dsl.Cause {
	switch {
	case e.Handled != "" && (e.Handled != f.Now || e.halfway(f.Now)):
		return e.update(f.Now)
	case e.Handled != "":
		return ""
	case e.handling():
		return e.Try.Cause
	case e.open():
		return ""
	case f.First && !f.New:
		return dsl.Resume // also if its view does not exist, because it may have existed
	case !f.Present:
		return ""
	case f.New && f.First:
		return dsl.Create
	}
	return dsl.Update // its view did not exist before
}

// update returns the cause for a level-triggered handler whose view has changed. It is the cause of its current work, if
// the last attempt itself has made the difference.
func (e Entry) update(now string) dsl.Cause {
	if e.Handled != now && e.open() && e.Try.View == now {
		return e.Try.Cause
	}
	return dsl.Update
}

// undoes reports whether the handler has begun work for another view than it has handled. If the object changes back,
// the handler must run once more.
func (e Entry) undoes() bool { return e.Handled != "" && e.handling() && e.Try.IsUnfinished() }

// halfway reports whether the handler has begun with another view, and has failed so far, or waits. That work may have
// to be undone, although the view is as before again.
func (e Entry) halfway(now string) bool {
	return e.handling() && e.Try.View != now && e.Try.IsUnfinished()
}

// pending returns the cause of unfinished work; empty if there is none.
func (e Entry) pending() dsl.Cause {
	if e.open() {
		return e.Try.Cause
	}
	return ""
}

// open reports whether there is unfinished work.
func (e Entry) open() bool { return e.Try.Cause != "" && !e.Try.Done }

// handling reports whether the current work is for the view itself.
func (e Entry) handling() bool {
	return e.open() && (e.Try.Cause == dsl.Create || e.Try.Cause == dsl.Update)
}

// Begin returns the entry with the work for a cause: the current one, or a new one if it is different, which ends
// any wait. If the handler has to undo begun work, the state that it has handled is unknown until it succeeds.
func (e Entry) Begin(c dsl.Cause, f Facts) Entry {
	if e.Deletion != f.Deletion {
		e.Try = Record{}
	}
	e.Deletion = f.Deletion
	if e.Try.Done && c != dsl.Delete {
		e.Try = Record{} // it was for another time
	}
	e.Try = e.Try.For(c, f.Now)
	if e.handling() && e.Handled == f.Now {
		e.Handled = rerun
	}
	return e
}

// WithoutEffect returns the entry of a handler whose run after Begin has no lasting effect. It runs once more, even if
// its view changes back in the meantime.
func (e Entry) WithoutEffect() Entry {
	e.Try.Early = time.Time{}
	if e.handling() && e.Handled != "" {
		e.Handled = rerun
	}
	return e
}

// End records the outcome of a try. After is the digest of the view with the handler's own changes; kept is the state to
// keep for the handler.
func (e Entry) End(v View, after string, kept map[string]any) Entry {
	e.Try.View, e.Implied = after, false
	if e.Try.Done && e.Try.Cause != dsl.Delete {
		e.Deletion = "" // it does not take part in that
	}
	if !e.Try.Done || e.Try.Cause == dsl.Delete {
		return e
	}
	e.ViewName, e.Handled, e.NewHandler, e.AsFound, e.OldDropped, e.Old, e.FailedFor = v.Name(), after, false, false, false, kept, ""
	e.Unmet, e.OldUnmet = "", nil
	if e.Try.Failed {
		e.FailedFor = e.Try.Cause
	} else {
		e.Try = Record{}
	}
	return e
}

// Living returns the entry for a living object: work of an earlier deletion does not count for the next one.
func (e Entry) Living() Entry {
	if e.Try.Cause == dsl.Delete {
		e.Try, e.Deletion = Record{}, ""
	}
	return e
}

// FilteredOut returns the entry of a due level-triggered handler whose filters do not match. Others may undo its work
// in the meantime, so it runs when they match again.
func (e Entry) FilteredOut() Entry {
	if e.Handled != "" {
		e.Handled = rerun
	}
	return e
}

// NotMet returns the entry of a handler whose when does not hold for the object of the snapshot. The last handled state is
// kept, so that the handler catches up when its when holds.
func (e Entry) NotMet(h Handler, snapshot *Snapshot) Entry {
	now := snapshot.Digest(h.View)
	switch {
	case e.Handled == "" || e.Unmet == now:
		return e // it has yet to run for the first time, or this is known
	case e.Handled == now:
		e.Unmet, e.OldUnmet = "", nil
		return e
	}
	e.Unmet, e.OldUnmet = now, nil
	if h.Old {
		e.OldUnmet = snapshot.Kept(h.View)
	}
	return e
}

// WakeFor notes a change of other objects as the cause of the handler's next run.
func (e Entry) WakeFor(c dsl.Cause) Entry {
	e.Try = Record{Cause: c}
	return e
}

// Retry gives another attempt to a handler that failed for good, because a handler that it comes after has
// succeeded.
func (e Entry) Retry() Entry {
	switch e.FailedFor {
	case "":
		return e
	case dsl.Create:
		e.Handled = ""
	case dsl.Timer:
		e.Handled, e.At = rerun, time.Time{}
	default:
		e.Handled = rerun
	}
	e.FailedFor, e.Try = "", Record{}
	return e
}

// RetryNow returns the entry of a handler for which a person asks for a retry. If it failed for good, fails or waits,
// its attempts count from the first, and its deadline begins again. Finished steps and sub-handlers stay finished. It
// reports whether there was anything to retry.
func (e Entry) RetryNow() (_ Entry, some bool) {
	switch c := e.FailedFor; {
	case c != "" && c != dsl.Create && !c.Lasting() && e.Try.Cause != dsl.Delete:
		e.FailedFor = ""
		return e.WakeFor(c), true // its view does not show that it is due
	case c != "" && e.Try.Cause != dsl.Delete:
		return e.Retry(), true
	case e.Try.Cause == "" || e.Try.Done && !e.Try.Failed:
		return e, false
	}
	e.Try = e.Try.anew()
	return e, true
}

// ToCreate reports whether the handler is due for create, or will be once its filters match.
func (e Entry) ToCreate(h Handler, snapshot *Snapshot) bool {
	return e.Handled == "" && h.On(dsl.Create) && (!e.NewHandler || e.NewObject) && snapshot.Exists(h.View)
}

// Introduce returns the entry of a handler that is new to an object. The object is known if other handlers have handled
// it. For a new object, the handler runs for create if some of its view exists by now, because it may have been
// written since. Otherwise it waits for that while others are still making the object.
func (e Entry) Introduce(h Handler, snapshot *Snapshot, known, making bool) Entry {
	switch {
	case e.NewObject && snapshot.Exists(h.View):
		e.NewHandler, e.NewObject = false, false
		return e
	case e.NewObject && making:
		return e
	}
	e.AsFound = true
	// A handler of updates must know in the next process where it began. A handler of creates starts again there,
	// with the same outcome, unless the text says that it is due for create.
	return e.Start(h, snapshot, known && !e.NewObject && !h.On(dsl.Update))
}

// Start returns the entry of a handler that takes the object's current state as given.
func (e Entry) Start(h Handler, snapshot *Snapshot, implied bool) Entry {
	e.ViewName, e.Handled, e.Implied, e.NewHandler, e.OldDropped, e.Old = h.View.Name(), snapshot.Digest(h.View), implied, false, false, nil
	e.NewObject, e.Unmet, e.OldUnmet = false, "", nil
	if h.Old {
		e.Old = snapshot.Kept(h.View) // a later handler may change the object before the progress is stored
	}
	return e
}

// Corrected returns the entry of a handler whose changes the server dropped or rewrote. Wanted is the digest of its
// view as intended, found is a snapshot of the result.
func (e Entry) Corrected(wanted string, found *Snapshot, h Handler) Entry {
	if e.Try.View == wanted {
		e.Try.View = found.Digest(h.View)
	}
	if e.Handled == wanted {
		e.Handled = found.Digest(h.View)
		if e.Old != nil {
			e.Old = found.Kept(h.View)
		}
	}
	return e
}

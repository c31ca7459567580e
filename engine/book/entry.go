// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// anew is what Entry.Seen says when the handler has handled something, nobody knows what, and is to run
// once more. No digest is like it.
const anew = "?"

// Entry is one handler's in a book. What has a name in JSON is stored.
type Entry struct {
	// Of names the view that Seen is of.
	Of string `json:"of,omitempty"`
	// Seen is the digest of the view that the handler handled last, by success or by failing for
	// good; empty while it has handled nothing.
	Seen string `json:"seen,omitempty"`
	// Lost is what it ran for when it failed for good with what it has seen; empty after a success.
	Lost dsl.Cause `json:"lost,omitempty"`
	// Try is what the handler is about to do, or failed for good with.
	Try Record `json:"try,omitzero"`
	// Deletion is the moment of the deletion that Try is of, where it is of one.
	Deletion string `json:"deletion,omitempty"`
	// Met: it has begun with the object, and has not run for it since.
	Met bool `json:"met,omitempty"`
	// Begins: the handler is new to the object, and begins with it as it is when it sees it first: its
	// filters may not hold yet. Fresh: and so was the object then, which it is to create. Quiet: the next
	// process finds out the same by itself, so nothing is stored for this alone.
	Begins, Fresh, Quiet bool `json:"-"`
	// Bare: nothing is kept of what the handler handled last, whatever the text has.
	Bare bool `json:"-"`
	// Old is what the handler handled last, kept for handlers that want to see it. Nil where it is
	// not, and where it lies in the text of the book.
	Old map[string]any `json:"-"`
}

// rests reports whether the entry says no more than what its handler handled last, or has met.
func (e Entry) rests() bool {
	return e.Lost == "" && e.Deletion == "" && e.Old == nil && !e.Begins && !e.Fresh && !e.Quiet && !e.Bare && e.Try == Record{}
}

// Facts are what an entry is held against.
type Facts struct {
	// Deletion is the moment at which the object was deleted, empty while it lives.
	Deletion string
	// Now is the digest of the handler's view, and Present whether there is anything of it.
	Now     string
	Present bool
	// First: this process has not finished a pass over the object yet.
	First bool
	// New: the object is new, and not found again.
	New bool
}

// WantsOld reports whether what the handler handled last is kept for it to see.
func WantsOld(h *dsl.Handler) bool { return h.Stores() && h.On(dsl.Update) && !h.NoOld }

// Due returns why the handler is to run, by what it has seen itself: empty when it has nothing to do.
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

// goesOn reports whether a try that is begun for a cause is to be gone on with, though nothing that is stored tells of it.
func goesOn(h *dsl.Handler, c dsl.Cause) bool {
	return c != "" && !c.Lasting() && (h.On(c) || c == dsl.Again)
}

// dueInDeletion: a success counts for the deletion that it was in, and a failure for good as long as
// the view is the same; a change of it is how a person says that the reason is mended.
func (e Entry) dueInDeletion(h *dsl.Handler, f Facts) dsl.Cause {
	if !h.On(dsl.Delete) {
		return e.resumedInDeletion(h, f)
	}
	if e.DeleteDone(f.Deletion) && (!e.Try.Failed || e.Try.View == f.Now) {
		return ""
	}
	return dsl.Delete
}

// resumedInDeletion: a handler runs once in a process for an object that was being deleted before, where it says so.
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
	case e.Begins:
		return ""
	case e.Seen == "" && h.On(dsl.Create) && f.Present:
		return dsl.Create
	case e.Seen == "" || e.Seen == f.Now && !e.halfway(f.Now):
		return ""
	case h.On(dsl.Update):
		return dsl.Update
	case e.Lost == dsl.Create && f.Present:
		return dsl.Create // what it failed with is mended
	}
	return ""
}

func (e Entry) dueByLevel(f Facts) dsl.Cause {
	switch {
	case e.Seen != "" && (e.Seen != f.Now || e.halfway(f.Now)):
		return e.update(f.Now)
	case e.Seen != "":
		return ""
	case e.handling():
		return e.Try.Cause
	case e.open():
		return ""
	case f.First && !f.New:
		return dsl.Resume // also where there is nothing of its view, for there may have been something
	case !f.Present:
		return ""
	case f.New && f.First:
		return dsl.Create
	}
	return dsl.Update // there was nothing of its view so far
}

// update is what a level-triggered handler runs for whose view has changed: what it is about already, where the view differs by
// what the last attempt has done itself.
func (e Entry) update(now string) dsl.Cause {
	if e.Seen != now && e.open() && e.Try.View == now {
		return e.Try.Cause
	}
	return dsl.Update
}

// undoes reports whether the handler has begun with another view than it has handled: should the object be again
// as it was, it is to run once more.
func (e Entry) undoes() bool { return e.Seen != "" && e.handling() && e.Try.Begun() }

// halfway reports whether the handler has begun with another view, and has failed with it so far, or waits: what
// it did for that may have to be undone, although the view is again as it was before.
func (e Entry) halfway(now string) bool {
	return e.handling() && e.Try.View != now && e.Try.Begun()
}

// pending is what a try is for that is begun and not finished, empty where there is none.
func (e Entry) pending() dsl.Cause {
	if e.open() {
		return e.Try.Cause
	}
	return ""
}

// open reports whether a try is begun and not finished.
func (e Entry) open() bool { return e.Try.Cause != "" && !e.Try.Done }

// handling reports whether the try that is under way is for the view itself.
func (e Entry) handling() bool {
	return e.open() && (e.Try.Cause == dsl.Create || e.Try.Cause == dsl.Update)
}

// Begin returns the entry with the try that a cause asks for: the one that is under way, or a new one
// when it is about something else, which cuts any wait short. Where it is to undo what it has begun, nobody
// knows from then on what it has handled, until it succeeds.
func (e Entry) Begin(c dsl.Cause, f Facts) Entry {
	if e.Deletion != f.Deletion {
		e.Try = Record{}
	}
	e.Deletion = f.Deletion
	if e.Try.Done && c != dsl.Delete {
		e.Try = Record{} // that was another time
	}
	e.Try = e.Try.For(c, f.Now)
	if e.handling() && e.Seen == f.Now {
		e.Seen = anew
	}
	return e
}

// Vain returns the entry of a handler that has run for what Begin said, and what came of it is not there: it
// is to run once more, also where its view is meanwhile as it was before.
func (e Entry) Vain() Entry {
	e.Try.Early = time.Time{}
	if e.handling() && e.Seen != "" {
		e.Seen = anew
	}
	return e
}

// End enters how a try came out. After is the digest of the view as the handler leaves it, with its own
// changes in it, and kept what is kept of that for the handler to see.
func (e Entry) End(v View, after string, kept map[string]any) Entry {
	e.Try.View, e.Quiet = after, false
	if e.Try.Done && e.Try.Cause != dsl.Delete {
		e.Deletion = "" // it has no part in that
	}
	if !e.Try.Done || e.Try.Cause == dsl.Delete {
		return e
	}
	e.Of, e.Seen, e.Begins, e.Met, e.Bare, e.Old, e.Lost = v.Name(), after, false, false, false, kept, ""
	if e.Try.Failed {
		e.Lost = e.Try.Cause
	} else {
		e.Try = Record{}
	}
	return e
}

// Living returns the entry for an object that lives: what was done in a deletion is not done for the next one.
func (e Entry) Living() Entry {
	if e.Try.Cause == dsl.Delete {
		e.Try, e.Deletion = Record{}, ""
	}
	return e
}

// Averted returns the entry of a level-triggered handler that is to run and does not see the object: others may
// undo meanwhile what it did, so it runs when it sees it again.
func (e Entry) Averted() Entry {
	if e.Seen != "" {
		e.Seen = anew
	}
	return e
}

// Wakes notes something that happened beside the object as what the handler is to run for.
func (e Entry) Wakes(c dsl.Cause) Entry {
	e.Try = Record{Cause: c}
	return e
}

// Again lets a handler that failed for good try once more, because what it comes after has succeeded.
func (e Entry) Again() Entry {
	switch e.Lost {
	case "":
		return e
	case dsl.Create:
		e.Seen = ""
	default:
		e.Seen = anew
	}
	e.Lost, e.Try = "", Record{}
	return e
}

// Meet returns the entry of a handler that begins with an object, which is known when others have handled it.
// One that was new it creates where there is anything of its view by now, for that may have been written since.
// Where there is not, it waits for that while others are still making the object.
func (e Entry) Meet(r Reader, look *Look, known, making bool) Entry {
	switch {
	case e.Fresh && look.Seen(r.View):
		e.Begins, e.Fresh = false, false
		return e
	case e.Fresh && making:
		return e
	}
	e.Met = true
	// A handler of updates must know in the next process where it began. A handler of creations begins again there, with the
	// same outcome, unless the text has it as one that is to create.
	return e.Start(r, look, known && !e.Fresh && !r.On(dsl.Update))
}

// Start returns the entry of a handler that begins with the object as it is.
func (e Entry) Start(r Reader, look *Look, quiet bool) Entry {
	e.Of, e.Seen, e.Quiet, e.Begins, e.Bare, e.Old = r.View.Name(), look.Digest(r.View), quiet, false, false, nil
	e.Fresh = false
	return e
}

// renewed returns an entry that may be of an earlier release, where the object is as it was handled then.
func (e Entry) renewed(r Reader, look *Look) Entry {
	formers, now := look.formers(r.View), look.Digest(r.View)
	if slices.Contains(formers, e.Seen) {
		e.Seen = now
	}
	if slices.Contains(formers, e.Try.View) {
		e.Try.View = now
	}
	return e
}

// formers are the digests that a view has had in earlier releases: those of former, and those of before the marks of tools that deploy
// counted as bookkeeping, where the object has some.
func (l *Look) formers(v View) []string {
	out := []string{l.former(v)}
	if essence := Marked(l.object, l.essence); essence != nil {
		then := &Look{object: l.object, essence: essence}
		out = append(out, then.Digest(v), then.former(v))
	}
	return out
}

// Observed returns the entry of a handler that has handled an object at the generation observed, which
// status.observedGeneration says; now is the object's generation.
func Observed(r Reader, look *Look, observed, now int64) Entry {
	e := Entry{Of: r.View.Name(), Seen: look.Digest(r.View)}
	if observed != now {
		e.Seen = anew
	}
	return e
}

// Counts reports whether a generation says the same as the entry of a handler: the handler has succeeded with its view as it
// is, and has begun with nothing else.
func (e Entry) Counts(r Reader, look *Look) bool {
	made := e.Seen != "" && !r.On(dsl.Update) // a handler that only creates ignores later changes
	return (made || e.Seen == look.Digest(r.View)) && e.Lost == "" && e.lastingTry(r).Cause == ""
}

// Corrected returns the entry of a handler whose changes the server dropped or rewrote: wanted is the digest
// of its view as it was to become, found a look at what became of it.
func (e Entry) Corrected(wanted string, found *Look, r Reader) Entry {
	if e.Try.View == wanted {
		e.Try.View = found.Digest(r.View)
	}
	if e.Seen == wanted {
		e.Seen = found.Digest(r.View)
		if e.Old != nil {
			e.Old = found.Kept(r.View)
		}
	}
	return e
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package progress keeps the progress of one object: for each handler the view that it handled last, the outcome, and
// the next attempt. From the progress and the current object it computes which handlers are due, and why. It is pure:
// the engine brings the object and the time, and stores the result.
//
// A handler looks at its view: the essence of the object, or the fields that it names. The essence leaves out what
// authors do not change, such as managedFields, the status and bookkeeping of tools. A handler is due when the
// digest of its view differs from that in its entry, whoever changed the object: a person, another operator, or
// another handler in the same reconcile. Entries are independent of each other.
//
// Progress belongs to one object, by UID. Progress that was copied or restored to another object is void. [Session]
// opens progress from the memory of the process or from the state annotation, which holds it in compressed form, and
// decides when storing it is worth a request.
package progress

import (
	"hash/fnv"
	"iter"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Handler is a handler with the data that progress needs of it.
type Handler struct {
	*dsl.Handler
	// Place is its place among the handlers, in their order. Most progress has its entry there, which makes it fast to
	// find.
	Place int
	// View is the handler's view.
	View View
	// Old: the last handled state is kept for it.
	Old bool
	// Sees are the fields of the object that the handler sees; nil means all in the cache.
	Sees *shape.Kept
	// Secrets are the Secrets whose values the handler may read.
	Secrets dsl.Secrets
}

// Progress has the last handled states of one object's handlers. The zero value is for an object that was not handled
// yet. Methods return changed copies, which do not affect the original.
type Progress struct {
	// UID is the UID of the object.
	UID types.UID
	// Generation is the object's generation when the progress was written; zero if it has none.
	Generation int64
	// Known: the object was handled before.
	Known bool

	entries []named
	// text is the text that was stored last. Essences that entries do not hold are read from it on demand, because
	// as trees they are several times as large.
	text string
	// kept are the text's essences while the progress is read; nil afterwards.
	kept *sealed
}

// named is a handler's entry. A slice is used because an object has few entries, and a map of one is ten times as large.
// Most entries only have the last handled view; these are stored in compact form.
type named struct {
	id string
	// viewName, handled and asFound are the fields of a compact entry. Whole is any other entry.
	viewName, handled string
	asFound           bool
	whole             *Entry
}

func entryOf(id string, e Entry) named {
	if e.rests() {
		return named{id: id, viewName: e.ViewName, handled: e.Handled, asFound: e.AsFound}
	}
	whole := e // allocates only here, and not for compact entries
	return named{id: id, whole: &whole}
}

// rests reports whether the entry equals this one and is compact.
func (n named) rests(e Entry) bool {
	return n.whole == nil && n.viewName == e.ViewName && n.handled == e.Handled && n.asFound == e.AsFound && e.rests()
}

func (n named) entry() Entry {
	if n.whole != nil {
		return *n.whole
	}
	return Entry{ViewName: n.viewName, Handled: n.handled, AsFound: n.asFound}
}

// Entry returns a handler's entry, or the zero Entry.
func (b Progress) Entry(id string) (e Entry, found bool) { return b.entryAt(b.at(id, 0)) }

// of is Entry for a handler whose place is known.
func (b Progress) of(h Handler) (e Entry, found bool) { return b.entryAt(b.at(h.ID, h.Place)) }

func (b Progress) entryAt(at int) (e Entry, found bool) {
	if at < 0 {
		return Entry{}, false
	}
	return b.entries[at].entry(), true
}

// All yields the handlers' entries, by their ids.
func (b Progress) All() iter.Seq2[string, Entry] {
	return func(yield func(string, Entry) bool) {
		for _, n := range b.entries {
			if !yield(n.id, n.entry()) {
				return
			}
		}
	}
}

// With returns the progress with a handler's entry replaced.
func (b Progress) With(id string, e Entry) Progress {
	at := b.at(id, 0)
	if b.rests(at, e) {
		return b
	}
	b = b.Clone()
	b.put(at, id, e)
	return b
}

// rests reports whether the entry at an index equals this one and only has the last handled view.
func (b Progress) rests(at int, e Entry) bool { return at >= 0 && b.entries[at].rests(e) }

// Clone returns progress that shares no entry with b, for put.
func (b Progress) Clone() Progress {
	b.entries = slices.Clone(b.entries)
	return b
}

// put is [Progress.With] in place, for the entry at an index; negative for a new one. It copies no other entry, so that
// the cost of a reconcile is linear in the number of handlers. No other Progress may share the entries of b.
func (b *Progress) put(at int, id string, e Entry) {
	if at >= 0 {
		b.entries[at] = entryOf(id, e)
	} else {
		b.entries = append(b.entries, entryOf(id, e))
	}
}

// at returns the index of a handler's entry; negative if there is none. It looks at the given place first.
func (b Progress) at(id string, place int) int {
	if place < len(b.entries) && b.entries[place].id == id {
		return place
	}
	return slices.IndexFunc(b.entries, func(n named) bool { return n.id == id })
}

// Moved returns the progress after the moment of a known deletion has changed.
func (b Progress) Moved(from, to string) Progress {
	b.entries = slices.Clone(b.entries)
	for i, n := range b.entries {
		if e := n.entry(); e.Deletion == from {
			e.Deletion = to
			b.entries[i] = entryOf(n.id, e)
		}
	}
	return b
}

// Moment is the state of an object for which progress is opened.
type Moment struct {
	Look *Snapshot
	// Generation is the object's generation; zero if it has none.
	Generation int64
	// Partial: the cache holds only a part of the spec, so the generation also changes for parts that are not
	// visible.
	Partial bool
}

// Adapt updates progress that was read from an object to the present handlers, so that each has an entry for its present
// view. It is called when a process sees the object for the first time. The error says that the old state is needed and
// cannot be read; the progress is complete without it.
func (b Progress) Adapt(handlers []Handler, m Moment) (Progress, error) {
	b = b.renamed(handlers)
	out := b
	out.entries, out.kept = nil, nil
	older := b.older(handlers, m)
	for _, h := range handlers {
		out.entries = append(out.entries, entryOf(h.ID, b.adapted(h, m, older)))
	}
	return out, b.kept.unreadable()
}

// renamed returns the progress with the entries of handlers' earlier ids under their current ids.
func (b Progress) renamed(handlers []Handler) Progress {
	for _, h := range handlers {
		for _, was := range h.Was {
			e, found := b.Entry(was)
			if _, has := b.Entry(h.ID); has || !found {
				continue
			}
			b, b.kept = b.With(h.ID, e), b.kept.renamed(was, h.ID)
		}
	}
	return b
}

// older reports whether the progress may have been restored together with an old state of the object: the object has
// changed since the progress was written, and still all handlers have handled exactly this state.
func (b Progress) older(handlers []Handler, m Moment) bool {
	if b.Generation == 0 || b.Generation >= m.Generation || m.Partial {
		return false
	}
	return !slices.ContainsFunc(handlers, func(h Handler) bool {
		e, found := b.of(h)
		return found && e.ViewName == h.View.Name() && e.Handled != "" && e.Handled != m.Look.Digest(h.View)
	})
}

// adapted returns one handler's updated entry.
func (b Progress) adapted(h Handler, m Moment, older bool) Entry {
	e, found := b.of(h)
	if !h.Stores() {
		return e.unstored(h)
	}
	switch {
	case !found && (b.Known || !h.On(dsl.Create) || !m.Look.Exists(h.View)):
		return Entry{ViewName: h.View.Name(), NewHandler: true, NewObject: !b.Known && h.On(dsl.Create)}
	case !found, e.Handled == "":
		e.ViewName = h.View.Name()
		e.NewHandler = found && (e.Try.Cause == "" || !h.On(dsl.Create))
		e.NewObject = e.NewHandler && h.On(dsl.Create)
		return e
	case e.ViewName != h.View.Name():
		return b.moved(e, h, m)
	case older && h.View.spec():
		e.Handled = rerun // somebody may have changed the object and changed it back
	}
	return e
}

// unstored returns the entry of a handler whose progress is only in memory.
func (e Entry) unstored(h Handler) Entry {
	switch {
	case !h.AtTime() || e.FailedFor != dsl.Timer:
		e.ViewName, e.Handled, e.Unmet, e.FailedFor = "", "", "", ""
	case e.ViewName != h.View.Name():
		e.ViewName, e.Handled = h.View.Name(), rerun // another version of it may not fail
	}
	return e
}

// moved returns the entry of a handler whose view is different from when the entry was written.
func (b Progress) moved(e Entry, h Handler, m Moment) Entry {
	tree, whole, fields := b.kept.openOnce(m.Look).of(h.ID)
	switch {
	case e.Unmet != "": // the changes between two states of its when cannot be computed from another view
		e.ViewName, e.Handled, e.Unmet, e.OldDropped, e.Old = h.View.Name(), rerun, "", true, nil
	case e.Handled != rerun && tree != nil && h.View.within(whole, fields) && !h.View.lacks(e.ViewName):
		then := NewSnapshot(tree)
		e.ViewName, e.Handled, e.Old = h.View.Name(), then.Digest(h.View), nil
		if h.Old {
			e.Old = then.Kept(h.View)
		}
	case e.Handled != rerun && h.View.generational() && b.Generation > 0 && b.Generation == m.Generation:
		e = e.Start(h, m.Look, false)
	default:
		e.ViewName, e.Handled, e.OldDropped, e.Old = h.View.Name(), rerun, true, nil
	}
	return e
}

// Stored returns the progress for keeping in memory after it was stored: its essences are in the text.
func (b Progress) Stored(text string) Progress {
	b.text, b.Known = text, b.Known || text != ""
	b.entries = slices.Clone(b.entries)
	for i, n := range b.entries {
		e := n.entry()
		e.Old, e.OldUnmet, e.Implied = nil, nil, false
		b.entries[i] = entryOf(n.id, e)
	}
	return b
}

// Text returns the text that was stored last.
func (b Progress) Text() string { return b.text }

// Mark identifies the part of the progress that is worth storing; empty for none.
func (b Progress) Mark(handlers []Handler) string {
	return b.sum(handlers, func(h Handler, e Entry) []string {
		t := e.lastingTry(h)
		return []string{
			e.ViewName, e.Handled, e.Unmet, string(e.FailedFor), e.Deletion, string(t.Cause), t.View, strconv.Itoa(t.Attempts), strconv.Itoa(t.Step),
			strconv.FormatBool(t.Done), strconv.FormatBool(t.Waiting), strconv.FormatInt(t.Due.Unix(), 10),
			t.Parts.Mark(), e.at(),
		}
	})
}

// sum returns a checksum of parts of the entries that are worth storing; empty if there are none.
func (b Progress) sum(handlers []Handler, parts func(Handler, Entry) []string) string {
	hash, some := fnv.New64a(), false
	for _, h := range handlers {
		e, found := b.of(h)
		if !found || e.NewHandler || e.Implied || !worth(h, e) {
			continue
		}
		said := parts(h, e)
		if said == nil {
			continue
		}
		some = true
		for _, part := range append(said, h.ID) {
			_, _ = hash.Write([]byte(part)) // hashes return no errors
			_, _ = hash.Write([]byte{0})
		}
	}
	if !some {
		return ""
	}
	return strconv.FormatUint(hash.Sum64(), 36)
}

// worth reports whether an entry has information that the next process needs.
func worth(h Handler, e Entry) bool {
	return h.Stores() && e.Handled != "" || e.lastingTry(h).Cause != "" || !e.At.IsZero()
}

// Outcomes is Mark without the numbers of attempts: it identifies what handlers have finished or begun.
func (b Progress) Outcomes(handlers []Handler) string {
	return b.sum(handlers, func(h Handler, e Entry) []string {
		var out []string
		if e.Handled != "" {
			out = []string{e.ViewName, e.Handled, e.Unmet, string(e.FailedFor)}
		}
		if at := e.at(); at != "" {
			out = append(out, at)
		}
		if e.undoes() || e.lastingTry(h).Step > 0 {
			out = append(out, string(e.Try.Cause), e.Try.View, strconv.Itoa(e.Try.Step), e.Deletion)
		}
		if began := e.lastingTry(h).Began; !began.IsZero() {
			out = append(out, began.Format(time.RFC3339Nano)) // a restart does not extend the deadline
		}
		if finished := e.lastingTry(h).Parts.Finished(); finished != "" {
			out = append(out, finished)
		}
		if e.Try.Cause == dsl.Delete && e.Try.Done {
			out = append(out, e.Deletion, strconv.FormatBool(e.Try.Failed), e.Try.View)
		}
		return out
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package book keeps the book of one object: for each handler what it handled last, with which outcome, and what it will do
// next. From the book and from the object as it is now it says which handlers are due, and why. It is pure: the engine brings
// the object and the time, and stores the result.
//
// A handler looks at its view: the essence of the object, or the fields that it names. The essence leaves out what no author
// changes, such as managedFields, the status and bookkeeping of tools. A handler is due when the digest of its view differs from
// the one that its entry has, whoever changed the object: a person, another operator, or another handler in the same pass.
// Entries are independent: a finished handler says nothing about another one.
//
// A book belongs to one object, by UID. A book that was copied or restored to another object is void. [Ledger] opens a book from
// the memory of the process or from the state annotation, which holds it packed, and decides when it is worth a request to
// store it.
package book

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Reader is a handler as books know it.
type Reader struct {
	*dsl.Handler
	// View is what it looks at.
	View View
	// Old: what it handled last is kept for it to see.
	Old bool
	// Secrets say what it may read of Secrets.
	Secrets dsl.Secrets
}

// Book is what one object's handlers have handled. The zero Book is that of an object nobody has
// handled. Methods return changed copies; a Book is not changed by others' copies of it.
type Book struct {
	// UID is the object's.
	UID types.UID
	// Generation is that of the object when the book was written, zero where it has none.
	Generation int64
	// Counted: it was written beside status.observedGeneration, and is void once that is past its generation.
	Counted bool
	// Known: the object was handled before.
	Known bool

	entries []named
	// text is the form in which the book was stored last. Essences that entries do not hold are read
	// from it when they are wanted, for as trees they are several times as large.
	text string
	// legacy is what a book of version 1 said, until its handlers have been met.
	legacy *legacy
	// kept is what the text has of essences, while the book is read; nil afterwards.
	kept *sealed
}

// named is a handler's entry. There are few for an object, and a map of one is ten times as large; and few of them say
// more than that the handler is at rest, so what they say then is kept apart.
type named struct {
	id string
	// of, seen and met are those of an entry that says nothing else. Whole is any other one.
	of, seen string
	met      bool
	whole    *Entry
}

func entryOf(id string, e Entry) named {
	if e.rests() {
		return named{id: id, of: e.Of, seen: e.Seen, met: e.Met}
	}
	whole := e // copied here, and not where it rests
	return named{id: id, whole: &whole}
}

// rests reports whether the entry is this one, and says nothing else.
func (n named) rests(e Entry) bool {
	return n.whole == nil && n.of == e.Of && n.seen == e.Seen && n.met == e.Met && e.rests()
}

func (n named) entry() Entry {
	if n.whole != nil {
		return *n.whole
	}
	return Entry{Of: n.of, Seen: n.seen, Met: n.met}
}

// Entry returns a handler's entry, the zero Entry when there is none.
func (b Book) Entry(id string) (e Entry, found bool) {
	for _, n := range b.entries {
		if n.id == id {
			return n.entry(), true
		}
	}
	return Entry{}, false
}

// With returns the book with a handler's entry in it.
func (b Book) With(id string, e Entry) Book {
	if b.Rests(id, e) {
		return b
	}
	b = b.Clone()
	b.Put(id, e)
	return b
}

// Rests reports whether a handler's entry says nothing but that the handler is at rest, and is this one.
func (b Book) Rests(id string, e Entry) bool {
	at := b.at(id)
	return at >= 0 && b.entries[at].rests(e)
}

// Clone returns a book that shares no entry with b, for [Book.Put].
func (b Book) Clone() Book {
	b.entries = slices.Clone(b.entries)
	return b
}

// Put is [Book.With] in place: it copies no other entry, so that a pass of many handlers costs in proportion to their
// number. No other Book may share the entries of b.
func (b *Book) Put(id string, e Entry) {
	if at := b.at(id); at >= 0 {
		b.entries[at] = entryOf(id, e)
	} else {
		b.entries = append(b.entries, entryOf(id, e))
	}
}

func (b Book) at(id string) int {
	return slices.IndexFunc(b.entries, func(n named) bool { return n.id == id })
}

// Moved returns the book where a deletion that was known by one moment is at another one now.
func (b Book) Moved(from, to string) Book {
	b.entries = slices.Clone(b.entries)
	for i, n := range b.entries {
		if e := n.entry(); e.Deletion == from {
			e.Deletion = to
			b.entries[i] = entryOf(n.id, e)
		}
	}
	return b
}

// Moment is an object as a book is opened for it.
type Moment struct {
	Look *Look
	// Generation is the object's, zero where it has none.
	Generation int64
	// Partial: not all of the spec is seen, so that the generation moves for what nobody sees.
	Partial bool
	// Deletion is as in Facts.
	Deletion string
	// Lost is called once when what handlers handled last is needed and cannot be read. Optional.
	Lost func(error)
}

// Meet returns a book that was read for handlers as they are now: each has an entry that is of its view.
// It is for the first time that a process sees the object.
func (b Book) Meet(readers []Reader, m Moment) Book {
	b = b.renamed(readers)
	for _, r := range readers {
		if e, found := b.Entry(r.ID); found {
			b = b.With(r.ID, e.renewed(r, m.Look))
		}
	}
	out := b
	out.entries, out.legacy, out.kept = nil, nil, nil
	older := b.older(readers, m)
	for _, r := range readers {
		var e Entry
		if b.legacy != nil {
			e = b.legacy.entry(r, m).renewed(r, m.Look)
		} else {
			e = b.meet(r, m, older)
		}
		out.entries = append(out.entries, entryOf(r.ID, e))
	}
	return out
}

// renamed returns the book in which handlers have the entries of ids that they had before.
func (b Book) renamed(readers []Reader) Book {
	for _, r := range readers {
		for _, was := range r.Was {
			e, found := b.Entry(was)
			if _, has := b.Entry(r.ID); has || !found {
				continue
			}
			b, b.kept = b.With(r.ID, e), b.kept.renamed(was, r.ID)
		}
	}
	return b
}

// older reports whether the book may have been put back with the object as it was then: the object has
// changed since it was written, and is nevertheless as all handlers have handled it.
func (b Book) older(readers []Reader, m Moment) bool {
	if b.Generation == 0 || b.Generation >= m.Generation || m.Partial {
		return false
	}
	return !slices.ContainsFunc(readers, func(r Reader) bool {
		e, found := b.Entry(r.ID)
		return found && e.Of == r.View.Name() && e.Seen != "" && e.Seen != m.Look.Digest(r.View)
	})
}

// meet returns one handler's entry.
func (b Book) meet(r Reader, m Moment, older bool) Entry {
	e, found := b.Entry(r.ID)
	switch {
	case !r.Stores():
		e.Of, e.Seen, e.Lost = "", "", "" // what it has seen is known for the life of a process
		return e
	case !found && (b.Known || !r.On(dsl.Create) || !m.Look.Seen(r.View)):
		return Entry{Of: r.View.Name(), Begins: true, Fresh: !b.Known && r.On(dsl.Create)}
	case !found, e.Seen == "":
		e.Of = r.View.Name()
		e.Begins = found && (e.Try.Cause == "" || !r.On(dsl.Create))
		e.Fresh = e.Begins && r.On(dsl.Create)
		return e
	case e.Of != r.View.Name():
		return b.moved(e, r, m)
	case older && r.View.spec():
		e.Seen = anew // the object was otherwise in between, and this may be what it was before
	}
	return e
}

// moved returns the entry of a handler that looks at something else now than when it was written.
func (b Book) moved(e Entry, r Reader, m Moment) Entry {
	tree, whole, fields := b.kept.met(m).of(r.ID)
	switch {
	case e.Seen != anew && tree != nil && r.View.within(whole, fields) && !r.View.lacks(e.Of):
		then := lookBack(tree)
		e.Of, e.Seen, e.Old = r.View.Name(), then.Digest(r.View), nil
		if r.Old {
			e.Old = then.Kept(r.View)
		}
	case e.Seen != anew && r.View.generational() && b.Generation > 0 && b.Generation == m.Generation:
		e = e.Start(r, m.Look, false)
	default:
		e.Of, e.Seen, e.Bare, e.Old = r.View.Name(), anew, true, nil
	}
	return e
}

// lookBack is NewLook for what is kept of an object.
func lookBack(kept map[string]any) *Look {
	return &Look{object: kept, essence: Unmarked(kept)}
}

// Old returns what a handler handled last, nil where it is not kept. The error says that it is, and cannot be read, or is
// too large for the object that the look is at.
func (b Book) Old(r Reader, look *Look) (map[string]any, error) {
	e, _ := b.Entry(r.ID)
	nothing := map[string]any{}
	switch {
	case e.Old != nil || !r.Old || e.Bare || e.Seen == "":
		return e.Old, nil
	case e.Seen == lookBack(nothing).Digest(r.View):
		return nothing, nil // an empty view is not stored
	case b.text == "":
		return nil, nil
	}
	stored, err := parse(b.text)
	if err != nil {
		return nil, err
	}
	stored = stored.renamed([]Reader{r}) // the text may be of a version in which it had another id
	was, _ := stored.Entry(r.ID)
	kept, err := stored.kept.open(look)
	if err != nil {
		return nil, fmt.Errorf("decoding what handlers have handled: %w", err)
	}
	tree, whole, fields := kept.of(r.ID)
	if tree == nil || !r.View.within(whole, fields) && was.Of != r.View.Name() {
		return nil, nil
	}
	then := lookBack(tree)
	if e.Seen != anew && then.Digest(r.View) != e.Seen && !slices.Contains(then.formers(r.View), e.Seen) {
		return nil, nil // that is of another time
	}
	return then.Kept(r.View), nil
}

// Passed reports whether status.observedGeneration is newer than the book: the book is void then.
func (b Book) Passed(observed int64) bool { return b.Counted && b.Generation < observed }

// Stored returns the book as memory holds it, once it is stored: its essences are in the text.
func (b Book) Stored(text string) Book {
	b.text, b.Known = text, b.Known || text != ""
	b.entries = slices.Clone(b.entries)
	for i, n := range b.entries {
		e := n.entry()
		e.Old, e.Quiet = nil, false
		b.entries[i] = entryOf(n.id, e)
	}
	return b
}

// Text returns the text that the book was stored as last.
func (b Book) Text() string { return b.text }

// Mark tells what is worth storing from other such things; empty when there is nothing.
func (b Book) Mark(readers []Reader) string {
	return b.sum(readers, func(r Reader, e Entry) []string {
		t := e.lastingTry(r)
		return []string{
			e.Of, e.Seen, string(e.Lost), e.Deletion, string(t.Cause), t.View, strconv.Itoa(t.Attempts), strconv.Itoa(t.Step),
			strconv.FormatBool(t.Done), strconv.FormatBool(t.Waiting), strconv.FormatInt(t.Due.Unix(), 10),
			t.Parts.Mark(),
		}
	})
}

// sum is a checksum of parts of the entries that are worth storing; empty when there are none.
func (b Book) sum(readers []Reader, parts func(Reader, Entry) []string) string {
	hash, some := fnv.New64a(), false
	for _, r := range readers {
		e, found := b.Entry(r.ID)
		if !found || e.Begins || e.Quiet || !worth(r, e) {
			continue
		}
		said := parts(r, e)
		if said == nil {
			continue
		}
		some = true
		for _, part := range append(said, r.ID) {
			_, _ = hash.Write([]byte(part)) // hashes return no errors
			_, _ = hash.Write([]byte{0})
		}
	}
	if !some {
		return ""
	}
	return strconv.FormatUint(hash.Sum64(), 36)
}

// worth reports whether an entry says anything that the next process must know.
func worth(r Reader, e Entry) bool {
	return r.Stores() && e.Seen != "" || e.lastingTry(r).Cause != ""
}

// Outcomes is Mark of what handlers have finished or begun with, and not of how often they have tried.
func (b Book) Outcomes(readers []Reader) string {
	return b.sum(readers, func(r Reader, e Entry) []string {
		var out []string
		if e.Seen != "" {
			out = []string{e.Of, e.Seen, string(e.Lost)}
		}
		if e.undoes() || e.lastingTry(r).Step > 0 {
			out = append(out, string(e.Try.Cause), e.Try.View, strconv.Itoa(e.Try.Step), e.Deletion)
		}
		if began := e.lastingTry(r).Began; !began.IsZero() {
			out = append(out, began.Format(time.RFC3339Nano)) // a restart gives no more time
		}
		if finished := e.lastingTry(r).Parts.Finished(); finished != "" {
			out = append(out, finished)
		}
		if e.Try.Cause == dsl.Delete && e.Try.Done {
			out = append(out, e.Deletion, strconv.FormatBool(e.Try.Failed), e.Try.View)
		}
		return out
	})
}

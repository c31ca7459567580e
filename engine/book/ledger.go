// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/patch"
)

// Rules are what holds for all objects of a resource.
type Rules struct {
	// Readers are the handlers with an entry in the book, in their order.
	Readers []Reader
	// Annotation is the key of the state annotation, Manager the field manager with which this operator writes it.
	Annotation, Manager string
	// Stores: what was handled is kept, because some handler depends on it and is not level-triggered.
	Stores bool
	// Partial: caches show no more than a part of an object.
	Partial bool
}

// Memory is what a process remembers of an object's ledger from one pass to the next. The zero value is of an object
// that no pass has seen.
type Memory struct {
	book Book
	// known: there is a book.
	known bool
	// generation: it is stored in status.observedGeneration.
	generation bool
	// stamped: something changes the object at each write, it seems.
	stamped bool
	// lost: the log tells that what handlers saw last could not be read.
	lost bool
	// rest is nil between passes where it says nothing: most objects have nothing stored on them.
	*rest
}

// rest is what is remembered of an object that has more to it than a book in memory.
type rest struct {
	// mark tells what of it is stored, outcomes what outcomes are among that.
	mark, outcomes string
	// deletion is the moment at which the object was deleted, as the last pass knew it; empty while it lives.
	deletion string
	// unsaved is since when the book has an outcome that is not stored, zero when it has none.
	unsaved time.Time
	// foreign is a text of others that was found in place of this one, and replaced.
	foreign string
	// sent is the book as it was sent to be stored last, nil once the answer is there.
	sent *Book
}

// Known reports whether a pass of this process has kept the book.
func (m *Memory) Known() bool { return m.known }

// Subject is the object of a pass.
type Subject struct {
	Object *unstructured.Unstructured
	// Deletion is the moment at which it was deleted, from [Deletion]; empty while it lives.
	Deletion string
	// First: no pass of this process over the object was finished. Fresh: it appeared after the first listing.
	First, Fresh bool
	// Generation: what was handled is kept in status.observedGeneration. Number is what that says.
	Generation bool
	Number     Number
	// Now is the time of the pass.
	Now time.Time
}

// Number is an object's status.observedGeneration.
type Number struct {
	// Value is zero where there is none.
	Value int64
	// Own: the operator wrote it, for this object.
	Own bool
}

// Handled is the generation that was handled, as far as the number tells.
func (n Number) Handled() int64 {
	if n.Own {
		return n.Value
	}
	return 0
}

// Logger returns the log for what happens to an object. It is made when something is logged.
type Logger interface{ Log() logr.Logger }

// Ledger is an object's book in one pass. Only that pass uses it.
type Ledger struct {
	rules   *Rules
	memory  *Memory
	subject Subject
	log     Logger

	book Book
	// cloned: no memory shares the book's entries.
	cloned bool
	// isNew: the object is new, and not found again by a new process.
	isNew bool
	// text is the state annotation as the object has it.
	text string
	// stored is the mark of what was stored of the book when the pass began, marked when it ends. Outcomes is that
	// of the outcomes among it.
	stored, marked, outcomes string
}

// Entry is the handler's in the book.
func (l *Ledger) Entry(r Reader) Entry {
	e, _ := l.book.Entry(r.ID)
	return e
}

// Put puts a handler's entry into the book.
func (l *Ledger) Put(r Reader, e Entry) {
	if l.book.Rests(r.ID, e) {
		return
	}
	if !l.cloned {
		l.book, l.cloned = l.book.Clone(), true
	}
	l.book.Put(r.ID, e)
}

// Old returns what a handler handled last, nil where it is not kept, or cannot be read. Look is at the object as it is.
func (l *Ledger) Old(r Reader, look *Look) map[string]any {
	old, err := l.book.Old(r, look)
	if err != nil {
		l.lost(err)
	}
	return old
}

// Known reports whether the object was handled before, by this process or another one.
func (l *Ledger) Known() bool { return l.book.Known }

// Facts are what a handler's entry is held against. Look is at the object as the handler sees it.
func (l *Ledger) Facts(r Reader, look *Look) Facts {
	return Facts{
		Deletion: l.subject.Deletion, Now: look.Digest(r.View), Present: look.Seen(r.View),
		First: l.subject.First, New: l.isNew,
	}
}

// Again lets handlers that come after one and failed for good try once more.
func (l *Ledger) Again(after Reader) {
	for _, r := range l.rules.Readers {
		if !slices.Contains(r.After, after.ID) {
			continue // few come after another one, and to look for an entry costs more
		}
		if e := l.Entry(r); e.Lost != "" {
			l.Put(r, e.Again())
		}
	}
}

// DeleteDone names the handlers that are through with the object's deletion, nil while it lives.
func (l *Ledger) DeleteDone() map[string]bool {
	if l.subject.Deletion == "" {
		return nil
	}
	out := map[string]bool{}
	for _, r := range l.rules.Readers {
		e := l.Entry(r)
		out[r.ID] = e.DeleteDone(l.subject.Deletion) && !e.Try.Failed
	}
	return out
}

// Outcomes tells what handlers have finished or begun with from other such things.
func (l *Ledger) Outcomes() string { return l.book.Outcomes(l.rules.Readers) }

// HasText reports whether the object has a state annotation.
func (l *Ledger) HasText() bool { return l.text != "" }

// Stamps notes that something changes the object at each write: from then on the book is written to the version
// alone that the pass has read. Stamped reports whether that is so.
func (l *Ledger) Stamps() { l.memory.stamped = true }

// Stamped is described at [Ledger.Stamps].
func (l *Ledger) Stamped() bool { return l.memory.stamped }

// Corrected enters that what was sent to be stored is what the book says, however it has changed since.
func (l *Ledger) Corrected() { l.marked = l.book.Mark(l.rules.Readers) }

// Keep remembers the book when the pass has written what marks say.
func (l *Ledger) Keep(marks patch.Marks) {
	m := l.memory
	if marks.Annotation == l.rules.Annotation {
		if l.text != "" && l.text != l.book.Text() {
			m.foreign = l.text
		}
		l.book = l.book.Stored(marks.State)
	}
	if l.marked != l.stored {
		l.outcomes, m.unsaved = l.Outcomes(), time.Time{}
	}
	m.book, m.known, m.mark, m.outcomes, m.generation, m.sent = l.book, true, l.marked, l.outcomes, l.subject.Generation, nil
	l.cloned = false
	m.close()
}

// Abandon remembers the book of a pass that broke off, or whose write has failed: nothing more of it is stored than
// before.
func (l *Ledger) Abandon() {
	m := l.memory
	m.book, m.known, m.mark, m.outcomes, m.generation = l.book, true, l.stored, l.outcomes, l.subject.Generation
	l.cloned = false
	m.close()
}

// close ends a pass: no memory is held of what there is nothing of. Whoever goes on with the ledger opens it again.
func (m *Memory) close() {
	if *m.rest == (rest{}) {
		m.rest = nil
	}
}

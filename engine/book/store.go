// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"errors"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// inMemory is how long an outcome or a retry is kept in memory alone: a crash within this time costs an
// attempt, a request for each attempt would cost more.
const inMemory = 10 * time.Second

// Draft is what a pass is about to write, and its object as handlers leave it.
type Draft struct {
	Look *Look
	// Wanted is what handlers want of the object, Finalizer whether the operator's is added to it.
	Wanted    *dsl.Patch
	Finalizer bool
	// Retries: some try is to be made again. Again is when the latest of those is that were made in this pass.
	Retries bool
	Again   time.Time
}

// Save has the book stored when something in it is not, unless that may well be over soon: it enters it into the
// marks. Wait is how long it may be kept in memory alone, zero where nothing is.
func (l *Ledger) Save(d Draft, marks *patch.Marks) (wait time.Duration) {
	l.marked = l.stored
	mark := l.book.Mark(l.rules.Readers)
	if l.subject.Generation && l.subject.Deletion == "" && l.allSeen(d.Look) {
		if n := l.subject.Number; n.Own || n.Value == 0 {
			l.marked = mark
			l.observe(d, marks)
			return 0
		}
		l.replace(marks)
	}
	if mark == l.stored && l.intact() {
		l.memory.unsaved = time.Time{}
		return 0
	}
	if postponed, wait := l.postponed(d); postponed {
		return wait
	}
	if l.Store(d, marks) {
		l.marked = mark
	}
	return 0
}

// allSeen reports whether a generation says all that has to be kept of the handlers.
func (l *Ledger) allSeen(look *Look) (all bool) {
	for _, r := range l.rules.Readers {
		if !r.Stores() {
			continue
		}
		if all = l.Entry(r).Counts(r, look); !all {
			return false
		}
	}
	return all
}

// replace makes status.observedGeneration say that all is handled where somebody else has written it. To write the same number
// again would not make it the operator's, and the server may not keep who writes. So the text says what was handled until the
// number is seen as the operator's.
func (l *Ledger) replace(marks *patch.Marks) {
	marks.Observed, marks.Late = l.subject.Object.GetGeneration(), true
	if l.book.Text() == "" {
		l.stored, l.outcomes = "", "" // it was in the number
	}
}

// observe makes status.observedGeneration say that all is handled, and takes off the text, which is for all that a generation
// cannot say. While the text counts, its removal marks the object as handled, so the request to the object goes last. Where
// there is no text, or the generation makes it void, the generation is the mark, and the request to the status goes last.
func (l *Ledger) observe(d Draft, marks *patch.Marks) {
	before, next := l.subject.Number.Handled(), l.foreseen(d.Wanted)
	marks.Observed = l.subject.Object.GetGeneration()
	void := before < next && l.text == l.book.Text() && l.book.Passed(next)
	switch {
	case l.text == "", void && len(d.Wanted.Object) > 0: // a text that is void then is taken off in the next pass
		marks.Late = true
	default:
		marks.Annotation, marks.State = l.rules.Annotation, ""
	}
}

// intact reports whether the object has the text that this process knows of. One that is none of this
// object's does not matter where there is nothing to store, nor one that was replaced once and is there
// again: somebody who copies it there is not fought with.
func (l *Ledger) intact() bool {
	return l.text == l.book.Text() || l.stored == "" || l.text != "" && l.text == l.memory.foreign
}

// postponed reports whether what is not stored waits for what is still to come. A retry that is due soon
// is not worth a request, and neither is a success beside it; but a success, or that a handler has begun
// with something, is not kept in memory alone for longer than a crash may cost.
func (l *Ledger) postponed(d Draft) (is bool, wait time.Duration) {
	if !d.Retries || len(d.Wanted.Object) > 0 || d.Finalizer || time.Until(d.Again) > inMemory {
		return false, 0
	}
	if l.Outcomes() == l.outcomes {
		return true, 0
	}
	if l.stored == "" && slices.ContainsFunc(l.rules.Readers, l.updated) {
		return false, 0 // to a process that finds no book the object is new, and what changes meanwhile is none to it
	}
	if l.memory.unsaved.IsZero() {
		l.memory.unsaved = l.subject.Now
	}
	left := l.memory.unsaved.Add(inMemory).Sub(l.subject.Now)
	return left > 0, max(0, left)
}

// updated reports whether a handler that runs for no creation has run for a change.
func (l *Ledger) updated(r Reader) bool {
	e := l.Entry(r)
	return r.Stores() && !r.On(dsl.Create) && e.Seen != "" && !e.Met
}

// Store enters the book into the marks, and reports whether it could.
func (l *Ledger) Store(d Draft, marks *patch.Marks) bool {
	l.book.Generation, l.book.Counted = l.foreseen(d.Wanted), l.subject.Generation
	text, degraded, err := l.book.Encode(l.rules.Readers, d.Look, Room(l.subject.Object.GetAnnotations(), l.rules.Annotation))
	switch {
	case errors.Is(err, ErrRoom):
		l.log.Log().Error(err, "state could not be stored; what handlers have handled is known to this process alone")
		return false
	case err != nil:
		l.log.Log().Error(err, "state could not be stored")
		return false
	case degraded:
		l.log.Log().Info("the essence is too large to be kept on the object; handlers get no old and diff for the next change", logmark.Warning, true)
	}
	marks.Annotation, marks.State, marks.Locked = l.rules.Annotation, text, l.memory.stamped
	return true
}

// foreseen is the generation that the object has once what is wanted is written.
func (l *Ledger) foreseen(wanted *dsl.Patch) int64 {
	now := l.subject.Object.GetGeneration()
	for key := range wanted.Object {
		if now > 0 && key != "metadata" {
			return now + 1
		}
	}
	return now
}

// Sending notes that what marks say is on its way: should the answer be lost, the text is known when it is seen.
func (l *Ledger) Sending(marks patch.Marks) {
	if marks.Annotation == l.rules.Annotation && marks.State != "" {
		sent := l.book.Stored(marks.State)
		l.memory.sent = &sent
	}
}

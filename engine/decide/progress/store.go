// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// inMemory is how long an outcome or a retry may be kept only in memory. A crash within this time costs an attempt;
// a request for each attempt would cost more.
const inMemory = 10 * time.Second

// Draft has the pending writes of a reconcile, and its object with the handlers' changes.
type Draft struct {
	Snapshot *Snapshot
	// Wanted has the handlers' changes of the object; Finalizer says that the operator's finalizer is added.
	Wanted    *dsl.Patch
	Finalizer bool
	// Retries: an attempt will be retried. Again is when the latest retry of this reconcile is due.
	Retries bool
	Again   time.Time
}

// Save adds the progress to the marks if it has unstored parts, unless these may soon be obsolete. Wait is how long
// they may be kept only in memory; zero if there are none.
func (l *Session) Save(d Draft, marks *patch.Marks) (wait time.Duration) {
	l.marked = l.saved.mark
	mark := l.book.Mark(l.rules.Handlers)
	if mark == l.saved.mark && l.intact() {
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

// intact reports whether the object has the annotation that this process knows. A foreign one does not matter if
// there is nothing to store. Neither does one that was replaced once and has come back: the engine does not fight
// with whoever copies it there.
func (l *Session) intact() bool {
	return l.text == l.book.Text() || l.saved.mark == "" || l.text != "" && l.text == l.memory.foreign
}

// postponed reports whether storing waits for later outcomes. A retry that is due soon does not justify a request,
// and neither does a success beside it. But a success, or the beginning of a handler's work, is kept only in memory
// for no longer than inMemory.
func (l *Session) postponed(d Draft) (is bool, wait time.Duration) {
	if !d.Retries || len(d.Wanted.Object) > 0 || d.Finalizer || time.Until(d.Again) > inMemory {
		return false, 0
	}
	if l.Outcomes() == l.saved.outcomes {
		return true, 0
	}
	if l.saved.mark == "" && slices.ContainsFunc(l.rules.Handlers, l.book.updated) {
		return false, 0 // otherwise the object would be new to another process, and changes in the meantime would be lost
	}
	if l.memory.unsaved.IsZero() {
		l.memory.unsaved = l.subject.Now
	}
	left := l.memory.unsaved.Add(inMemory).Sub(l.subject.Now)
	return left > 0, max(0, left)
}

// updated reports whether a handler without the cause create has run for a change.
func (b Progress) updated(h Handler) bool {
	e, _ := b.of(h)
	return h.Stores() && !h.On(dsl.Create) && e.Handled != "" && !e.AsFound
}

// Store adds the progress to the marks, and reports whether it could.
func (l *Session) Store(d Draft, marks *patch.Marks) bool {
	l.book.Generation = l.subject.foreseen(d.Wanted)
	text, degraded, err := l.book.Encode(l.rules.Handlers, d.Snapshot, Room(l.subject.Object.GetAnnotations(), l.rules.Annotation))
	switch {
	case errors.Is(err, errRoom):
		l.log.Log().Error(err, "state could not be stored; what handlers have handled is known to this process alone")
		return false
	case err != nil:
		l.log.Log().Error(err, "state could not be stored")
		return false
	case degraded:
		l.log.Log().Info("the essence is too large to be kept on the object; handlers get no old and diff for the next change", logmark.Warning, true)
	}
	marks.Annotation, marks.State = l.rules.Annotation, text
	return true
}

// foreseen returns the generation that the object will have after the write.
func (s Subject) foreseen(wanted *dsl.Patch) int64 {
	now := s.Object.GetGeneration()
	if now == 0 {
		return 0
	}
	if s.StatusCounts && len(wanted.Status)+len(wanted.Conditions) > 0 {
		return now + 1
	}
	for key := range wanted.Object {
		if key != "metadata" {
			return now + 1
		}
	}
	return now
}

// Sending notes that the marks are being sent. If the response is lost, the annotation is recognised later.
func (l *Session) Sending(marks patch.Marks) {
	if marks.Annotation == l.rules.Annotation && marks.State != "" {
		sent := l.book.Stored(marks.State)
		l.memory.sent = &sent
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// Rules are common to all objects of a resource.
type Rules struct {
	// Handlers are the handlers with an entry in the progress, in their order.
	Handlers []Handler
	// Annotation is the key of the state annotation.
	Annotation string
	// Stores: the progress is stored, because a handler that is not level-triggered needs it.
	Stores bool
	// Partial: caches hold only a part of an object.
	Partial bool
}

// Memory is an object's progress in the memory of a process between reconciles. The zero value is for an object without
// an earlier reconcile.
type Memory struct {
	book Progress
	// known: there is progress.
	known bool
	// stamped: the server changes the object at each write.
	stamped bool
	// lost: the log has already said that the old state could not be read.
	lost bool
	// rest is nil between reconciles if it is empty: most objects have nothing stored on them.
	*rest
}

// rest is the state of objects that have more than progress in memory.
type rest struct {
	// saved identifies the stored progress.
	saved saved
	// deletion is the moment of the object's deletion that the last reconcile knew; empty while the object lives.
	deletion string
	// unsaved is when the progress got an unstored outcome; zero for none.
	unsaved time.Time
	// foreign is a foreign annotation that was found in place of this one, and replaced.
	foreign string
	// sent is the progress that was last sent; nil after the response.
	sent *Progress
}

// saved identifies the progress that is stored on the object: all of it, and the outcomes in it.
type saved struct{ mark, outcomes string }

func (b Progress) saved(handlers []Handler) saved {
	return saved{b.Mark(handlers), b.Outcomes(handlers)}
}

// Known reports whether a reconcile of this process has kept progress.
func (m *Memory) Known() bool { return m.known }

// Subject is the object of a reconcile.
type Subject struct {
	Object *unstructured.Unstructured
	// Deletion is the moment of the deletion, from [Deletion]; empty while the object lives.
	Deletion string
	// First: this process has finished no reconcile over the object yet. Fresh: the object appeared after the first
	// list.
	First, Fresh bool
	// StatusCounts: changes of the status make another generation, because it is no subresource.
	StatusCounts bool
	// Now is the time of the reconcile.
	Now time.Time
}

// Logger returns the logger of an object. The logger is made when something is logged.
type Logger interface{ Log() logr.Logger }

// Session is an object's progress in one reconcile. Only that reconcile uses it.
type Session struct {
	rules   *Rules
	memory  *Memory
	subject Subject
	log     Logger

	book Progress
	// cloned: no Memory shares the progress's entries.
	cloned bool
	// isNew: the object is new, and was not handled by an earlier process.
	isNew bool
	// text is the state annotation on the object.
	text string
	// saved is the stored progress at the beginning of the reconcile. marked is the mark of the stored progress at its
	// end.
	saved  saved
	marked string
}

// Entry returns a handler's entry.
func (l *Session) Entry(h Handler) Entry {
	e, _ := l.book.of(h)
	return e
}

// Put puts a handler's entry into the progress.
func (l *Session) Put(h Handler, e Entry) {
	at := l.book.at(h.ID, h.Place)
	if l.book.rests(at, e) {
		return
	}
	if !l.cloned {
		l.book, l.cloned = l.book.Clone(), true
	}
	l.book.put(at, h.ID, e)
}

// Old returns the state that a handler handled last; nil if it is not kept, or cannot be read. Snapshot is of the current
// object.
func (l *Session) Old(h Handler, snapshot *Snapshot) map[string]any {
	old, err := l.book.Old(h, snapshot)
	if err != nil {
		l.lost(err)
	}
	return old
}

// Known reports whether the object was handled before, by this process or another one.
func (l *Session) Known() bool { return l.book.Known }

// Facts returns the facts for evaluating a handler's entry. Snapshot is of the object as the handler sees it.
func (l *Session) Facts(h Handler, snapshot *Snapshot) Facts {
	return Facts{
		Deletion: l.subject.Deletion, Now: snapshot.Digest(h.View), Present: snapshot.Exists(h.View),
		First: l.subject.First, New: l.isNew,
	}
}

// RetryAfter gives another attempt to handlers that come after this one and have failed for good.
func (l *Session) RetryAfter(done Handler) {
	for _, h := range l.rules.Handlers {
		if !slices.Contains(h.After, done.ID) {
			continue // few handlers have After, and finding an entry costs more
		}
		if e := l.Entry(h); e.FailedFor != "" {
			l.Put(h, e.Retry())
		}
	}
}

// DeleteDone returns the handlers that are done with the object's deletion; nil while it lives.
func (l *Session) DeleteDone() map[string]bool {
	if l.subject.Deletion == "" {
		return nil
	}
	out := map[string]bool{}
	for _, h := range l.rules.Handlers {
		e := l.Entry(h)
		out[h.ID] = e.DeleteDone(l.subject.Deletion) && (!e.Try.Failed || e.Try.Ended)
	}
	return out
}

// Outcomes returns a mark of finished and begun work of handlers.
func (l *Session) Outcomes() string { return l.book.Outcomes(l.rules.Handlers) }

// HasText reports whether the object has a state annotation.
func (l *Session) HasText() bool { return l.text != "" }

// Stamps notes that the server changes the object at each write. From then on, the stored progress is not corrected by a
// second write, which the server would change as well.
func (l *Session) Stamps() { l.memory.stamped = true }

// Stamped reports whether the server changes the object at each write.
func (l *Session) Stamped() bool { return l.memory.stamped }

// Corrected notes that the current progress is the one that was sent, even if it has changed since.
func (l *Session) Corrected() { l.marked = l.book.Mark(l.rules.Handlers) }

// IsIdle reports whether the next reconcile has no progress to store, if it finds the object as it was written.
func (l *Session) IsIdle(written *unstructured.Unstructured) bool {
	known := l.book.Text() == written.GetAnnotations()[l.rules.Annotation]
	return known && !l.memory.stamped && l.book.Mark(l.rules.Handlers) == l.saved.mark
}

// IsHandlerIdle reports whether a handler has nothing to do for an object, and its entry stays the same. Chosen: its
// filters on labels and annotations hold. Otherwise it may be due, and runs when they hold.
func (l *Session) IsHandlerIdle(h Handler, snapshot *Snapshot, chosen bool) bool {
	e := l.Entry(h)
	open := e.FailedFor != "" || e.Deletion != "" || e.NewHandler
	if !chosen && h.Level() && (e.Handled == rerun || e.Handled == "") {
		return !open && !e.Try.IsUnfinished() && (e.Try == Record{} || e.Try.View == snapshot.Digest(h.View))
	}
	begun := open || e.Try != Record{} || e.NewObject
	return chosen && !begun && e.Due(h.Handler, Facts{Now: snapshot.Digest(h.View), Present: snapshot.Exists(h.View)}) == ""
}

// Keep remembers the progress after the reconcile has written the marks.
func (l *Session) Keep(marks patch.Marks) {
	m := l.memory
	if marks.Annotation == l.rules.Annotation {
		if l.text != "" && l.text != l.book.Text() {
			m.foreign = l.text
		}
		l.book = l.book.Stored(marks.State)
	}
	if l.marked != l.saved.mark {
		l.saved, m.unsaved = saved{l.marked, l.Outcomes()}, time.Time{}
	}
	m.book, m.known, m.saved, m.sent = l.book, true, l.saved, nil
	l.cloned = false
	m.close()
}

// Abandon keeps the progress of a reconcile that broke off, or whose write has failed. Nothing more of it is stored than
// before.
func (l *Session) Abandon() {
	m := l.memory
	m.book, m.known, m.saved = l.book, true, l.saved
	l.cloned = false
	m.close()
}

// close ends a reconcile and frees memory that is empty. Open begins the next one.
func (m *Memory) close() {
	if *m.rest == (rest{}) {
		m.rest = nil
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
)

// Situation is what has come up for one handler.
type Situation struct {
	book.Facts
	// Pass is the time of the pass.
	Pass time.Time
	// Child and Related: children and related objects have changed. Index: what the handler has read of indexes has.
	// Unseen: this process has not looked at them before.
	Child, Related, Index, Unseen bool
	// Named: this handler is to look again though others are not. Resync: the period has passed.
	Named, Resync bool
	// Fires: the handler's timer does. Granted: a right that it lacked was given.
	Fires, Granted bool
	// Again: it asked to be run again, and the time has come.
	Again bool
	// Chosen: its filters on labels and annotations hold.
	Chosen bool
	// Gone: the object is gone from sight.
	Gone bool
	// Released: the object is being deleted, and others alone hold it still.
	Released bool
}

// Decide decides what a handler is to run for, empty for nothing, and returns its entry with all that has come up.
func Decide(h *dsl.Handler, e book.Entry, s Situation) (book.Entry, dsl.Cause) {
	e = s.enter(h, e)
	c := e.Due(h, s.Facts)
	t := s.triggered(h)
	switch {
	case c == "" && t != "":
		return e.WakeFor(t), t
	case t.FromOthers(), c == dsl.Delete && s.concerns(h), s.Again:
		e.Try = e.Try.TryEarly(s.Pass) // what it waits for may have come
	case c == "" && h.Level() && !s.Chosen:
		e = e.FilteredOut()
	}
	if c == dsl.Resume && s.Gone {
		c = ""
	}
	if c == dsl.Delete && s.Released && !h.NoFinalizer {
		c = "" // where the finalizer is gone, or never was, there is nothing to do for one that holds its object
	}
	return e, c
}

// enter returns a handler's entry with what has come up since the last pass: ends of waits, and of what was true in
// a deletion alone.
func (s Situation) enter(h *dsl.Handler, e book.Entry) book.Entry {
	if s.Child || s.Related || s.Index {
		e.Try = e.Try.RetryNow()
	}
	if s.Granted {
		e.Try = e.Try.Granted()
	}
	if s.Deletion != "" {
		return e
	}
	e = e.Living()
	begins := func(changed bool, c dsl.Cause) bool { return (changed || s.Unseen) && h.On(c) }
	if begins(s.Child, dsl.Child) || begins(s.Related, dsl.RelatedChange) || begins(s.Index, dsl.IndexChange) {
		e.Try.Step, e.Try.Parts = 0, e.Try.Parts.Anew() // what the first step did may not be so any more
	}
	return e
}

// concerns reports whether something beside the object has changed that a handler is known to read. In a deletion
// that is no cause, but what the handler waits for may have come.
func (s Situation) concerns(h *dsl.Handler) bool {
	return s.Child && h.Known.Reads.Children || s.Related && h.Known.Reads.Related || s.Index
}

// triggered returns the cause that a handler has by what happened beside the object, empty when there is
// none.
func (s Situation) triggered(h *dsl.Handler) dsl.Cause {
	switch {
	case s.Deletion != "":
	case (s.Child || s.Named) && h.On(dsl.Child):
		return dsl.Child
	case s.Related && h.On(dsl.RelatedChange):
		return dsl.RelatedChange
	case s.Index && h.On(dsl.IndexChange):
		return dsl.IndexChange
	case s.Fires:
		return dsl.Timer
	case s.Again:
		return dsl.Again
	case (s.Resync || s.Named) && h.On(dsl.Resync):
		return dsl.Resync
	}
	return ""
}

// AskFor is a cause of the handler to ask its filters with.
func AskFor(h *dsl.Handler) dsl.Cause {
	for _, c := range []dsl.Cause{dsl.Update, dsl.Create, dsl.Delete} {
		if h.On(c) {
			return c
		}
	}
	return dsl.Resume
}

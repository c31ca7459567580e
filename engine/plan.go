// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// job is a handler with a cause in this pass.
type job struct {
	reader book.Reader
	cause  dsl.Cause
	// entry is the handler's in the book as the pass found it, begun for the cause; record is its try,
	// as far as it has come.
	entry  book.Entry
	record progress.Record
	ran    bool
	// warned: its attempt has reported a warning of its own.
	warned bool
	// wants is what the handler asked for in this pass; offers: conditions of its own are among it.
	wants  *dsl.Patch
	offers bool
	// saw and left are digests of the handler's view, before it ran and with its own changes.
	saw, left string
}

// asks reports whether the handler wants anything of the object.
func (j *job) asks() bool { return j.wants != nil && !j.wants.Empty() }

// plan returns what a handler has to do, nil when nothing.
func (p *pass) plan(r book.Reader, n changes) *job {
	e := p.ledger.Entry(r)
	if p.deletion == "" && e.Begins && p.sees(r, dsl.Update).Holds {
		e = e.Meet(r, p.look, p.ledger.Known(), p.making(r))
	}
	s := p.situation(r, n)
	e, c := plan(r.Handler, e, s)
	if c == "" {
		p.ledger.Put(r, e)
		return nil
	}
	j := &job{reader: r, cause: c, entry: e.Begin(c, s.Facts)}
	j.record = j.entry.Try
	if c != dsl.Delete && (!book.Stores(r.Handler) || !book.Lasting(c)) {
		e = j.entry // it is in mind from here on, should it match later
	}
	p.ledger.Put(r, e)
	if !p.matches(j) {
		return nil
	}
	return j
}

// situation is what has come up for one handler.
type situation struct {
	book.Facts
	now time.Time
	// child and related: children and related objects have changed; first: nobody in this process has looked at
	// them before. Named: this handler is to look again though others are not. Resync: the period has passed.
	child, related, first, named, resync bool
	// fires: the handler's timer does. Granted: a right that it lacked was given.
	fires, granted bool
	// chosen: its filters on labels and annotations hold.
	chosen bool
	// released: the object is being deleted, and others alone hold it still.
	released bool
}

func (p *pass) situation(r book.Reader, n changes) situation {
	return situation{
		Facts: p.ledger.Facts(r, p.look), now: p.now,
		child: n.Child, related: p.related.Changed(), first: !p.memory.seen, named: slices.Contains(n.of, r.ID), resync: n.resync,
		fires: p.fires(r, n.ticks), granted: slices.Contains(n.Granted, r.ID),
		chosen:   p.chooses(r.Handler),
		released: p.deletion != "" && !p.gone && !p.finalizer(),
	}
}

// plan decides what a handler is to run for, empty for nothing, and returns its entry with all that has come up.
func plan(h *dsl.Handler, e book.Entry, s situation) (book.Entry, dsl.Cause) {
	e = s.enter(h, e)
	c := e.Due(h, s.Facts)
	t := s.triggered(h, c)
	switch {
	case c == "" && t != "":
		return e.Wakes(t), t
	case t == dsl.Child, t == dsl.RelatedChange, c == dsl.Delete && s.concerns(h):
		e.Try = e.Try.Peek(s.now) // what it waits for may have come
	case c == "" && h.Level() && !s.chosen:
		e = e.Averted()
	}
	if c == dsl.Delete && s.released && !h.NoFinalizer {
		c = "" // where the finalizer is gone, or never was, there is nothing to do for one that holds its object
	}
	return e, c
}

// enter returns a handler's entry with what has come up since the last pass: ends of waits, and of what was true in
// a deletion alone.
func (s situation) enter(h *dsl.Handler, e book.Entry) book.Entry {
	if s.child || s.related {
		e.Try = e.Try.Hurry()
	}
	if s.granted && !e.Try.Done {
		e.Try.Due, e.Try.Early = time.Time{}, time.Time{}
	}
	if s.Deletion != "" {
		return e
	}
	e = e.Living()
	if (s.child || s.first) && h.On(dsl.Child) || (s.related || s.first) && h.On(dsl.RelatedChange) {
		e.Try.Step = 0 // what the first step did may not be so any more
	}
	return e
}

// concerns reports whether something beside the object has changed that a handler is known to read. In a deletion
// that is no cause, but what the handler waits for may have come.
func (s situation) concerns(h *dsl.Handler) bool {
	return s.child && h.Reads.Children || s.related && h.Reads.Related
}

// triggered returns the cause that a handler has by what happened beside the object, empty when there is
// none. Due is the cause that it has otherwise.
func (s situation) triggered(h *dsl.Handler, due dsl.Cause) dsl.Cause {
	switch {
	case s.Deletion != "":
	case (s.child || s.named) && h.On(dsl.Child):
		return dsl.Child
	case s.related && h.On(dsl.RelatedChange):
		return dsl.RelatedChange
	case due == "" && s.fires:
		return dsl.Timer
	case (s.resync || s.named) && h.On(dsl.Resync):
		return dsl.Resync
	}
	return ""
}

// making reports whether other handlers are still to be tried again for the object's creation, or wait for such a
// one: they may write what this one looks at.
func (p *pass) making(r book.Reader) bool {
	return slices.ContainsFunc(p.r.rules.readers, func(other book.Reader) bool {
		e := p.ledger.Entry(other)
		if other.ID == r.ID || e.Seen != "" || e.Begins || !other.On(dsl.Create) {
			return false
		}
		return e.Try.Begun() || p.blocked(other.Handler)
	})
}

// blocked reports whether a handler that this one comes after is not through yet, or failed for good.
// Either way this one has no outcome.
func (p *pass) blocked(h *dsl.Handler) bool {
	return slices.ContainsFunc(p.r.rules.readers, func(r book.Reader) bool {
		if !slices.Contains(h.After, r.ID) {
			return false
		}
		if j := p.jobOf(r); j != nil {
			return !j.record.Done || j.record.Failed
		}
		e := p.ledger.Entry(r)
		failed := e.Lost != "" && p.deletion == "" || p.deletion != "" && e.Parted(p.deletion) && e.Try.Failed
		return failed && p.sees(r, causeOf(r.Handler)).Holds
	})
}

// jobOf returns what a handler has to do in this pass, nil when nothing, or when it has not come to it.
func (p *pass) jobOf(r book.Reader) *job {
	i := slices.IndexFunc(p.jobs, func(j *job) bool { return j.reader.Handler == r.Handler })
	if i < 0 {
		return nil
	}
	return p.jobs[i]
}

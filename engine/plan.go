// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"github.com/go-logr/logr"

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
	f := p.facts(r)
	e, c := p.due(r, n, f)
	if c == "" || c == dsl.Delete && p.released(r.Handler) {
		p.put(r, e)
		return nil
	}
	j := &job{reader: r, cause: c, entry: e.Begin(c, f)}
	j.record = j.entry.Try
	if c != dsl.Delete && (!r.Stores() || !c.Lasting()) {
		e = j.entry // it is in mind from here on, should it match later
	}
	p.put(r, e)
	if !p.matches(j) {
		return nil
	}
	return j
}

// due returns a handler's entry with all that has come up for it, and what it is to run for, empty for nothing.
func (p *pass) due(r book.Reader, n changes, f book.Facts) (book.Entry, dsl.Cause) {
	e := p.news(r, n)
	c := e.Due(r.Handler, f)
	t := p.triggered(r, n, c)
	switch {
	case c == "" && t != "":
		return e.Wakes(t), t
	case t.Origin() == dsl.FromOthers, c == dsl.Delete && p.concerns(r, n):
		e.Try = e.Try.Peek(p.now) // what it waits for may have come
	case c == "" && r.Level() && !p.chooses(r.Handler):
		e = e.Averted()
	}
	return e, c
}

// put puts a handler's entry into the book.
func (p *pass) put(r book.Reader, e book.Entry) { p.book = p.book.With(r.ID, e) }

// entry is the handler's in the book.
func (p *pass) entry(r book.Reader) book.Entry {
	e, _ := p.book.Entry(r.ID)
	return e
}

// news returns a handler's entry with what has come up for it since the last pass: a first sight of the
// object, and ends of waits.
func (p *pass) news(r book.Reader, n changes) book.Entry {
	e := p.entry(r)
	if n.Child || p.related.Changed() {
		e.Try = e.Try.Hurry()
	}
	if slices.Contains(n.Granted, r.ID) && !e.Try.Done {
		e.Try.Due, e.Try.Early = time.Time{}, time.Time{}
	}
	if p.deletion != "" {
		return e
	}
	e = e.Living()
	if e.Begins && p.answer(&job{reader: r, cause: dsl.Update}).holds {
		e = e.Meet(r, p.sight, p.book.Known, p.making(r))
	}
	if (n.Child || !p.memory.seen) && r.On(dsl.Child) || (p.related.Changed() || !p.memory.seen) && r.On(dsl.RelatedChange) {
		e.Try.Step = 0 // what the first step did may not be so any more
	}
	return e
}

// concerns reports whether something beside the object has changed that a handler is known to read. In a deletion
// that is no cause, but what the handler waits for may have come.
func (p *pass) concerns(r book.Reader, n changes) bool {
	return n.Child && r.Reads.Children || p.related.Changed() && r.Reads.Related
}

// making reports whether other handlers are still to be tried again for the object's creation, or wait for such a
// one: they may write what this one looks at.
func (p *pass) making(r book.Reader) bool {
	return slices.ContainsFunc(p.r.rules.readers, func(other book.Reader) bool {
		e := p.entry(other)
		if other.ID == r.ID || e.Seen != "" || e.Begins || !other.On(dsl.Create) {
			return false
		}
		return e.Try.Begun() || p.blocked(other.Handler)
	})
}

// triggered returns the cause that a handler has by what happened beside the object, empty when there is
// none. Due is the cause that it has otherwise.
func (p *pass) triggered(r book.Reader, n changes, due dsl.Cause) dsl.Cause {
	switch h := r.Handler; {
	case p.deletion != "":
	case (n.Child || slices.Contains(n.of, h.ID)) && h.On(dsl.Child):
		return dsl.Child
	case p.related.Changed() && h.On(dsl.RelatedChange):
		return dsl.RelatedChange
	case due == "" && p.fires(r):
		return dsl.Timer
	case (p.resync || slices.Contains(n.of, h.ID)) && h.On(dsl.Resync):
		return dsl.Resync
	}
	return ""
}

// released reports whether the object, which others still hold, was let go by this operator: a
// delete handler that holds its object has nothing to do where the finalizer is gone, or never was.
func (p *pass) released(h *dsl.Handler) bool {
	return !p.gone && !h.NoFinalizer && !p.finalizer()
}

func (p *pass) log() logr.Logger {
	if p.whole {
		return p.r.log
	}
	return p.r.log.WithValues("namespace", p.key.Namespace, "name", p.key.Name)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// handle runs the handlers that have something to do: each in its order, or those that the resource's lifecycle chooses.
func (p *run) handle(ctx context.Context, n changes) error {
	readers, choose := p.r.rules.Readers, p.r.spec.Lifecycle
	if p.gone && p.memory.Finalized {
		readers = slices.DeleteFunc(slices.Clone(readers), func(r book.Reader) bool { return !r.On(dsl.Event) })
	}
	for _, r := range readers {
		j := p.plan(ctx, r, n)
		if j == nil {
			continue
		}
		if p.jobs = append(p.jobs, j); choose == nil {
			if err := p.attempt(ctx, j); err != nil {
				return err
			}
		}
	}
	if choose == nil {
		return nil
	}
	chosen, err := p.jobs.Chosen(choose, p.blocked, p.now)
	if err != nil {
		p.log().Error(err, "lifecycle failed; the first handler runs")
	}
	for _, r := range chosen {
		j := p.plan(ctx, r, n) // what those before it have done to the object counts
		if p.jobs = p.jobs.Replace(r, j); j == nil {
			continue
		}
		if err := p.attempt(ctx, j); err != nil {
			return err
		}
	}
	switch again, left := p.jobs.Left(p.blocked, p.now); {
	case left:
		p.next = p.next.AtOnce()
	case again > 0:
		p.next = p.next.Sooner(again, queue.Due)
	}
	return nil
}

// plan returns what a handler has to do, nil when nothing.
func (p *run) plan(ctx context.Context, r book.Reader, n changes) *pass.Job {
	e := p.entry(r)
	s := p.situation(r, n)
	e, c := pass.Decide(r.Handler, e, s)
	if c == "" || c == dsl.Delete && p.daemonsEnd() {
		p.ledger.Put(r, e)
		return nil
	}
	j := pass.Begin(r, c, e, s.Facts)
	j.Soon = s.Again && p.memory.Again.Of(r.ID).Soon()
	if c != dsl.Delete && (!r.Stores() || !c.Lasting()) {
		e = j.Entry // it is in mind from here on, should it match later
	}
	p.ledger.Put(r, e)
	if !p.matches(ctx, j) {
		return nil
	}
	return j
}

// entry returns a handler's entry in the book. Where the handler begins with the object, the entry has the object as it is. Where
// its filter fails, it begins, too: a change that comes before the answer may be one for it. The filter is asked until it answers.
func (p *run) entry(r book.Reader) book.Entry {
	e := p.ledger.Entry(r)
	unanswered := e.Met && p.memory.Filters.Of(r.Handler) != ""
	if p.deletion != "" || !e.Begins && !unanswered {
		return e
	}
	if a := p.sees(r, dsl.Update); e.Begins && (a.Holds || a.Err != nil && !a.Unread && !e.Fresh) {
		e = e.Meet(r, p.Look, p.ledger.Known(), p.others().Make(r))
	}
	return e
}

// situation finds out what has come up for a handler.
func (p *run) situation(r book.Reader, n changes) pass.Situation {
	return pass.Situation{
		Facts: p.factsFor(r, n.Fresh), Pass: p.now,
		Child: n.Child, Related: p.related.Changed(), Index: p.indexes.Changed(r.ID), Unseen: !p.memory.Seen,
		Named: slices.Contains(n.of, r.ID), Resync: n.resync,
		Fires: n.clock.Fires(r), Granted: slices.Contains(n.Granted, r.ID),
		Again:    p.memory.Again.Of(r.ID).Passed(p.now),
		Chosen:   !r.Level() || filter.Chooses(r.Handler, p.Current), // nobody else asks
		Gone:     p.gone,
		Released: p.deletion != "" && !p.gone && !p.finalizer(),
	}
}

// factsFor returns the facts that a handler's entry is compared with. The book says whether an object is new. Without a book, it
// is new to a handler that stores nothing if it is fresh, or if some handler sees it that would have left a book.
func (p *run) factsFor(r book.Reader, fresh bool) book.Facts {
	f := p.ledger.Facts(r, p.Look)
	if !f.New || !f.First || fresh || !r.On(dsl.Resume) {
		return f
	}
	if p.marks == nil {
		marks := slices.ContainsFunc(p.r.rules.Readers, func(other book.Reader) bool {
			if !other.Stores() {
				return false
			}
			holds, err := p.asks(other, pass.AskFor(other.Handler)) // the answer is not kept: what handlers do may change it
			return holds && err == nil
		})
		p.marks = &marks
	}
	f.New = *p.marks
	return f
}

// others is what is known of handlers that another one has to do with.
func (p *run) others() pass.Others {
	return pass.Others{
		Readers: p.r.rules.Readers, Entry: p.ledger.Entry, Jobs: p.jobs, Deletion: p.deletion,
		Sees:   func(r book.Reader) bool { return p.sees(r, pass.AskFor(r.Handler)).Keeps() },
		Unsure: p.filters.WasDue,
	}
}

// blocked reports whether a handler that this one comes after is not through yet, or failed for good.
// Either way this one has no outcome.
func (p *run) blocked(h *dsl.Handler) bool { return len(h.After) > 0 && p.others().Block(h) }

// blocker names the handler for which blocked holds; empty for none.
func (p *run) blocker(h *dsl.Handler) string { return p.others().Blocker(h) }

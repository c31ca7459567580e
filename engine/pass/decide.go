// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/collision"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// handle runs the handlers that have something to do: each in its order, or those that the resource's lifecycle chooses.
func (p *pass) handle(ctx context.Context, st State) (State, error) {
	readers, all := p.Rules.Readers, p.Rules.Spec.Lifecycle == nil
	if p.Gone && p.memory.Finalized {
		readers = slices.DeleteFunc(slices.Clone(readers), func(r book.Handler) bool { return !r.On(dsl.Event) })
	}
	for _, r := range readers {
		var j *Job
		if st, j = p.decide(ctx, st, r); j == nil {
			continue
		}
		st.Jobs = append(st.Jobs, j)
		if !all {
			continue
		}
		var err error
		if st, err = p.attempt(ctx, st, j); err != nil {
			return st, err
		}
	}
	if all {
		return st, nil
	}
	return p.handleChosen(ctx, st)
}

// handleChosen runs the handlers that the resource's lifecycle chooses.
func (p *pass) handleChosen(ctx context.Context, st State) (State, error) {
	blocked := func(h *dsl.Handler) bool { return p.blocker(st, h) != "" }
	chosen, err := st.Jobs.Chosen(p.Rules.Spec.Lifecycle, blocked, p.Now)
	if err != nil {
		st = st.noted(Note{Line: "lifecycle failed; the first handler runs", Err: err, Grave: true})
	}
	for _, j := range st.Jobs {
		if slices.ContainsFunc(chosen, func(r book.Handler) bool { return r.Handler == j.Reader.Handler }) {
			continue
		}
		why, _ := p.postponed(st, j)
		if why.Reason == "" {
			why.Reason = NotChosen
		}
		st.Why = append(st.Why, why)
	}
	for _, r := range chosen {
		var j *Job
		st, j = p.decide(ctx, st, r) // what those before it have done to the object counts
		if st.Jobs = st.Jobs.Replace(r, j); j == nil {
			continue
		}
		if st, err = p.attempt(ctx, st, j); err != nil {
			return st, err
		}
	}
	switch wait, some := st.Jobs.NotRun(blocked, p.Now); {
	case some:
		st.Due = st.Due.AtOnce()
	case wait > 0:
		st.Due = st.Due.Sooner(wait, queue.Due)
	}
	return st, nil
}

// decide returns what a handler has to do, nil for nothing. The state has the reason of one that is due and does not run.
func (p *pass) decide(ctx context.Context, st State, r book.Handler) (State, *Job) {
	e := p.entry(st, r)
	s := p.situation(st, r)
	e, c := Decide(r.Handler, e, s)
	if c == "" || c == dsl.Delete && p.daemonsEnd() {
		p.ledger.Put(r, e)
		if c != "" {
			st.Why = append(st.Why, Why{Handler: r.ID, Cause: c, Reason: DaemonsFirst})
		}
		return st, nil
	}
	j := Begin(r, c, e, s.Facts)
	j.Soon = s.Again && p.memory.Again.Of(r.ID).Soon()
	if c != dsl.Delete && (!r.Stores() || !c.Lasting()) {
		e = j.Entry // it is remembered from here on, should it match later
	}
	p.ledger.Put(r, e)
	st, a := p.matches(ctx, st, j)
	if !a.Holds {
		st.Why = append(st.Why, turnedAway(j, a, st.Current))
		return st, nil
	}
	return st, j
}

// entry returns a handler's entry in the book. Where the handler begins with the object, the entry has the object as it is. Where
// its filter fails, it begins, too: a change that comes before the answer may be one for it. The filter is asked until it answers.
func (p *pass) entry(st State, r book.Handler) book.Entry {
	e := p.ledger.Entry(r)
	unanswered := e.AsFound && p.memory.Filters.Of(r.Handler) != ""
	if p.Deletion != "" || !e.NewHandler && !unanswered {
		return e
	}
	if a := p.sees(st.Draft, r, dsl.Update); e.NewHandler && (a.Holds || a.Err != nil && !a.Unread && !e.NewObject) {
		e = e.Introduce(r, st.Look, p.ledger.Known(), p.othersMake(st, r))
	}
	return e
}

// situation finds out what has come up for a handler.
func (p *pass) situation(st State, r book.Handler) Situation {
	n := st.Found
	var again *Alarm
	if p.memory.Again != nil {
		again = p.memory.Again.Of(r.ID)
	}
	return Situation{
		Facts: p.factsFor(st, r), Pass: p.Now,
		Child: p.Changes.Child, Related: p.related.Changed(), Index: p.indexes.Changed(r.ID), Unseen: !p.memory.Seen,
		Named: slices.Contains(n.Named, r.ID), Resync: n.Resync,
		Fires: n.Clock.Fires(r), Granted: slices.Contains(p.Changes.Granted, r.ID),
		Again:    again.Passed(p.Now),
		Chosen:   !r.Level() || filter.Chooses(r.Handler, st.Current), // no other code asks
		Gone:     p.Gone,
		Released: p.Deletion != "" && !p.Gone && !p.finalizer(),
	}
}

// factsFor returns the facts that a handler's entry is compared with. The book says whether an object is new. Without a book, it
// is new to a handler that stores nothing if it is fresh, or if some handler sees it that would have left a book.
func (p *pass) factsFor(st State, r book.Handler) book.Facts {
	f := p.ledger.Facts(r, st.Look)
	if !f.New || !f.First || p.Changes.Fresh || !r.On(dsl.Resume) {
		return f
	}
	if p.marks == nil {
		marks := slices.ContainsFunc(p.Rules.Readers, func(other book.Handler) bool {
			if !other.Stores() {
				return false
			}
			holds, err := p.asks(st.Draft, other, AskFor(other.Handler)) // the answer is not kept: what handlers do may change it
			return holds && err == nil
		})
		p.marks = &marks
	}
	f.New = *p.marks
	return f
}

// othersMake reports whether others are still to be tried again for the object's creation, or wait for such a one: they may write
// what this one looks at.
func (p *pass) othersMake(st State, r book.Handler) bool {
	return slices.ContainsFunc(p.Rules.Readers, func(other book.Handler) bool {
		e := p.ledger.Entry(other)
		if other.ID == r.ID || e.Handled != "" || e.NewHandler || !other.On(dsl.Create) {
			return false
		}
		return e.Try.Begun() || p.blocker(st, other.Handler) != ""
	})
}

// publish shows a state to code that runs while the step waits: a handler, or a write.
func (p *pass) publish(st State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published = st
}

// Undecided names a handler, other than but, that may want a child of a kind and has not said so yet. It is empty when all
// have: a handler that has succeeded since the last change has applied the children that it wants.
func (p *pass) Undecided(but string, kind schema.GroupKind) (handler string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.Rules.Readers {
		if r.ID != but && !collision.Lasts(r.Handler) && collision.MayMake(p.Rules.Spec, r.Handler, kind) && p.unsaid(p.published, r) {
			return r.ID
		}
	}
	return ""
}

// unsaid reports whether a handler is due in this pass and not through, has failed, or has a filter that cannot be asked.
func (p *pass) unsaid(st State, r book.Handler) bool {
	if j := st.Jobs.Of(r); j != nil {
		return !j.Through()
	}
	e := p.entry(st, r)
	_, c := Decide(r.Handler, e, p.situation(st, r))
	if c == "" {
		c = AskFor(r.Handler)
		if sees, err := p.asks(st.Draft, r, c); !sees || err != nil {
			return err != nil
		}
		return st.Jobs.Record(r, e).Failed || r.On(dsl.Timer) && !st.Found.Clock.Ran(r)
	}
	sees, err := p.asks(st.Draft, r, c)
	return sees || err != nil
}

// turnedAway says why a handler's filters keep it from running. Object is as the handler sees it.
func turnedAway(j *Job, a filter.Answer, object *unstructured.Unstructured) Why {
	w := Why{Handler: j.Reader.ID, Cause: j.Cause, Reason: WhenFalse}
	switch unmatched := filter.Unmatched(j.Reader.Handler, object); {
	case a.Err != nil:
		w.Reason, w.Detail = WhenFails, a.Err.Error()
	case unmatched != "":
		w.Reason, w.Detail = NotMatched, unmatched
	}
	return w
}

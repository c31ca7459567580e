// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// unsureLook is the interval at which the engine asks again about something that holds others up, and whose change makes
// no event.
const unsureLook = 10 * time.Second

// filters keeps the answers of handlers' filters in one reconcile, and their failures.
type filters struct {
	filter.Answers
	// of is the subject of the answers: the object, and the outcomes of handlers.
	of    *progress.Snapshot
	notes []Note
	due   queue.Next
}

// about drops the answers if they are about another version of the object, or other outcomes.
func (f *filters) about(look *progress.Snapshot) {
	if f.of != look {
		f.of = look
		f.Reset()
	}
}

// askFilters evaluates the handler's filters for a cause.
func (p *run) askFilters(d Draft, r progress.Handler, c dsl.Cause) filter.Answer {
	return p.answer(d, r, c, progress.Record{})
}

// answer evaluates the handler's filters for an attempt.
func (p *run) answer(d Draft, r progress.Handler, c dsl.Cause, try progress.Record) filter.Answer {
	q := filter.Question{Handler: r.Handler, Cause: c}
	p.filters.about(d.Look)
	a, asked := p.filters.Known(q)
	if asked {
		return a
	}
	a.Holds = filter.Matches(r.Handler, d.Current)
	if r.When == nil {
		return a // caching it would cost more than asking again
	}
	if c == dsl.Delete && r.TakesAway() {
		return a
	}
	if a.Holds {
		children := p.family.Reader()
		a.Holds, a.Err = attempt.Ask(r.When, p.subject(d, r, c, try, children, p.indexes.For(r.ID, c)))
		if a.Err != nil {
			a.Holds, a.Unread = false, children.Failed() || p.indexes.Failed()
			p.filterFailed(d, q, r, a)
		}
	}
	if a.Err == nil {
		p.memory.Filters.Answered(q)
	}
	p.filters.Note(q, a)
	return a
}

// askAgain evaluates a filter that failed before and that this reconcile has not evaluated: the handler may have nothing
// to do, although the change that broke the filter was taken back.
func (p *run) askAgain(d Draft, q filter.Question) {
	switch {
	case q.Cause == dsl.Delete && p.Deletion != "": // it is evaluated when the handler is due
		return
	case q.Time: // under deletion nothing runs by time
		p.memory.Filters.Answered(q)
		return
	}
	for _, r := range slices.Concat(p.Rules.Readers, p.Rules.Daemons) {
		if r.ID == q.Handler.ID {
			p.askFilters(d, r, q.Cause)
		}
	}
}

// asks evaluates a handler's filters without caching the answer, because others may change the object before the
// handler's turn.
func (p *run) asks(d Draft, r progress.Handler, c dsl.Cause) (bool, error) {
	if !filter.Matches(r.Handler, d.Current) || r.When == nil {
		return filter.Matches(r.Handler, d.Current), nil
	}
	return attempt.Ask(r.When, p.subject(d, r, c, p.progress.Entry(r).Try, p.family.Reader(), p.indexes.For(r.ID, c)))
}

// filterFailed reports a filter that failed. The handler does not match the object until there is an answer, and a
// deletion waits for it.
func (p *run) filterFailed(d Draft, q filter.Question, r progress.Handler, a filter.Answer) {
	note := Note{Kind: FilterFails, Action: r.ID, Handler: r.ID, Err: a.Err, Known: p.retryFilter(d, q, r, a)}
	if !note.Known && !a.Unread && p.Deletion == "" {
		note.Reason, note.Message = conditions.FilterFailed, fmt.Sprintf("Handler %s does not see this object, for its filter failed: %v", r.ID, a.Err)
	}
	p.filters.notes = append(p.filters.notes, note)
	last := p.Gone && q.Cause == dsl.Event // no later event makes the handler run
	if !last && (q.Cause != dsl.Delete || p.Deletion == "" || r.NoFinalizer && !p.Gone) {
		return
	}
	p.filters.SetUnsure()
	p.filters.notes = append(p.filters.notes, Note{
		Action: r.ID, Reason: conditions.FilterFailed, Message: fmt.Sprintf("Deletion is held: it is unknown whether handler %s sees the object: %v", r.ID, a.Err),
	})
}

// retryFilter schedules the next evaluation of a filter that failed: after its handler's back-off, or sooner if children
// could not be read. It reports whether the filter failed with the same text before. This is no attempt of the handler.
// A permanent error waits for an event.
func (p *run) retryFilter(d Draft, q filter.Question, r progress.Handler, a filter.Answer) (before bool) {
	before, again := p.memory.Filters.Failed(q, a, filter.Moment{
		Now: p.Now, View: d.Look.Digest(r.View) + p.Deletion,
		Backoff: func(failures int) time.Duration { return progress.Backoff(r.Backoff, failures) },
	})
	if !dsl.IsPermanent(a.Err) {
		p.filters.due = p.filters.due.Sooner(time.Until(again), queue.Due)
	}
	if a.Unread {
		p.filters.due = p.filters.due.Sooner(p.Family.Look(), queue.Resync) // no event tells when children can be read
	}
	return before
}

// matches evaluates the handler's filters for an attempt. If they exclude the object, triggers from outside the object
// are dropped. The entry keeps new and changed objects, because they may match later. While a filter fails, it keeps
// everything.
func (p *run) matches(ctx context.Context, st State, j *Attempt) (State, filter.Answer) {
	a := p.answer(st.Draft, j.Reader, j.Cause, j.Record)
	if a.Holds {
		return st, a
	}
	if a.Err != nil {
		p.filters.Due(j.Reader.ID)
	}
	e := p.progress.Entry(j.Reader)
	begins := j.Reader.Level() && e.Handled == "" // later, its view does not show that it was due
	if j.Cause.Transient() && a.Err == nil && !begins {
		e.Try = progress.Record{}
	}
	if j.Reader.Level() && (!j.Cause.FromClock() || j.Cause == dsl.Again) {
		e = e.FilteredOut()
	}
	if j.Reader.Stores() && p.Deletion == "" && a.Err == nil && filter.Matches(j.Reader.Handler, st.Current) {
		e = e.NotMet(j.Reader, st.Look)
	}
	p.progress.Put(j.Reader, e)
	if a.Err == nil {
		st = p.sayFiltered(ctx, st, j)
	}
	return st, a
}

// sayFiltered sets the conditions with which a handler says that its `when` is false. It repeats them in each reconcile,
// so that a later version of the object has them too; unchanged ones are not written.
func (p *run) sayFiltered(ctx context.Context, st State, j *Attempt) State {
	r := j.Reader
	if r.Known.Filtered == nil || !r.Level() || p.Deletion != "" || !filter.Matches(r.Handler, st.Current) {
		return st
	}
	wants := dsl.NewPatch()
	r.Known.Filtered(p.subject(st.Draft, r, j.Cause, j.Record, p.family.Reader(), p.indexes.For(r.ID, j.Cause)), wants)
	wants, err := p.offered(ctx, wants, st.Explicit)
	if err != nil {
		st = st.noted(Note{Level: 1, Line: "condition of a filtered handler could not be set yet", Values: []any{"handler", r.ID, "error", err.Error()}})
		st.Due = st.Due.Sooner(unsureLook, queue.Resync)
		return st
	}
	st.Filtered = append(slices.Clip(st.Filtered), wants)
	st.Draft = p.alsoFiltered(st.Draft, wants)
	return st
}

// alsoFiltered returns a draft with the conditions of filtered handlers.
func (p *run) alsoFiltered(at Draft, says ...*dsl.Patch) Draft {
	for _, wants := range says {
		at = at.With(wants, p.generation(), p.Now)
	}
	return at
}

// wantsFinalizer reports whether something must happen before the object goes: a delete handler runs, a daemon ends, or
// the engine deletes or releases children.
func (p *run) wantsFinalizer(d Draft) bool {
	held := slices.Contains(p.family.Base().GetFinalizers(), p.Rules.Finalizer)
	return p.Rules.Finalizes && p.handlersHold(d) || p.family.NeedsFinalizer(held)
}

// handlersHold is wantsFinalizer for handlers and daemons. A handler whose filter fails may hold the object. All filters
// are evaluated, so that each failure is reported before the deletion.
func (p *run) handlersHold(d Draft) (hold bool) {
	for _, r := range p.Rules.Readers {
		if !r.On(dsl.Delete) || r.NoFinalizer {
			continue
		}
		// If children cannot be read yet, as after a restart, the present finalizer decides.
		a := p.askFilters(d, r, dsl.Delete)
		hold = hold || a.Holds || a.Err != nil && (!a.Unread || p.Changes.Fresh || p.hasFinalizer())
	}
	return hold || slices.ContainsFunc(p.Rules.Daemons, func(r progress.Handler) bool { return p.wantsEnd(d, r) })
}

// generation returns the generation of the object as the reconcile has read it.
func (p *run) generation() int64 { return p.Own.Resource().Generation(p.Object) }

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// unsureLook is how long it is until something is looked at again that nobody tells of, and that holds others up.
const unsureLook = 10 * time.Second

// matches applies the handler's filters. An object that does not match any more has nothing to do
// with what happened beside it; new and changed ones are kept in mind, should it match later. So is everything while a filter
// cannot be asked.
func (p *run) matches(ctx context.Context, j *pass.Job) bool {
	a := p.answer(j.Reader, j.Cause, j.Record)
	if a.Holds {
		return true
	}
	if a.Err != nil {
		p.filters.Due(j.Reader.ID)
	}
	e := p.ledger.Entry(j.Reader)
	begins := j.Reader.Level() && e.Seen == "" // of such a one no view tells later that it was to run
	if j.Cause.Transient() && a.Err == nil && !begins {
		e.Try = book.Record{}
	}
	if j.Reader.Level() && (!j.Cause.FromClock() || j.Cause == dsl.Again) {
		e = e.Averted()
	}
	p.ledger.Put(j.Reader, e)
	if a.Err == nil {
		p.sayFiltered(ctx, j)
	}
	return false
}

// sayFiltered has a handler say in its conditions that its when is false. It says the same in each pass until that is
// true, so a later version of the object has it, too, and what has not changed is not written.
func (p *run) sayFiltered(ctx context.Context, j *pass.Job) {
	r := j.Reader
	if r.Filtered == nil || !r.Level() || p.deletion != "" || p.gone || !filter.Chooses(r.Handler, p.Current) {
		return
	}
	wants := dsl.NewPatch()
	r.Filtered(p.subject(r, j.Cause, j.Record, p.family.Reader(), p.indexes.For(r.ID, j.Cause)), wants)
	wants, err := p.offered(ctx, wants, p.explicit)
	if err != nil {
		p.log().V(1).Info("that a handler is filtered is not said yet", "handler", r.ID, "error", err.Error())
		p.next = p.next.Sooner(unsureLook, queue.Resync)
		return
	}
	p.filtered = append(p.filtered, wants)
	p.show(p.alsoFiltered(p.Draft, wants))
}

// alsoFiltered returns a draft with what handlers say of their filters.
func (p *run) alsoFiltered(at pass.Draft, says ...*dsl.Patch) pass.Draft {
	for _, wants := range says {
		at, _ = at.With(wants, p.r.own.Resource().Generation(p.object), p.now) // conditions fail by nothing
	}
	return at
}

// sees asks the handler's filters for a cause.
func (p *run) sees(r book.Reader, c dsl.Cause) filter.Answer {
	return p.answer(r, c, book.Record{})
}

// answer asks the handler's filters for a try.
func (p *run) answer(r book.Reader, c dsl.Cause, try book.Record) filter.Answer {
	q := filter.Question{Handler: r.Handler, Cause: c}
	a, asked := p.filters.Known(q)
	if asked {
		return a
	}
	a.Holds = filter.Chooses(r.Handler, p.Current)
	if r.When == nil {
		return a // to ask again costs no more than to keep it
	}
	if a.Holds {
		children := p.family.Reader()
		a.Holds, a.Err = attempt.Ask(r.When, p.subject(r, c, try, children, p.indexes.For(r.ID, c)))
		if a.Err != nil {
			a.Holds, a.Unread = false, children.Failed() || p.indexes.Failed()
			p.filterFailed(q, r, a)
		} else {
			p.memory.Filters.Answered(q)
		}
	}
	p.filters.Note(q, a)
	return a
}

// filterFailed deals with a filter that failed. The handler does not see the object until there is an answer, and a deletion
// waits for it.
func (p *run) filterFailed(q filter.Question, r book.Reader, a filter.Answer) {
	before := p.retryFilter(q, r, a)
	p.sayFilterFailed(r.ID, a, before)
	last := p.gone && q.Cause == dsl.Event // nothing comes after that for it
	if !last && (q.Cause != dsl.Delete || p.deletion == "" || r.NoFinalizer && !p.gone) {
		return
	}
	p.filters.Doubt()
	p.r.engine.events.Warn(p.object, r.ID, pass.FilterFailed,
		fmt.Sprintf("Deletion is held: whether handler %s sees the object cannot be told: %v", r.ID, a.Err))
}

// retryFilter has a filter that failed asked again after its handler's back-off, or sooner where children could not be read, and
// reports whether it has failed with the same words before. That is no attempt of the handler. A failure for good, as of an
// expression that costs too much, waits for an event.
func (p *run) retryFilter(q filter.Question, r book.Reader, a filter.Answer) (before bool) {
	before, again := p.memory.Filters.Failed(q, a, filter.Moment{
		Now: p.now, View: p.Look.Digest(r.View) + p.deletion,
		Backoff: func(failures int) time.Duration { return book.Backoff(r.Backoff, failures) },
	})
	if !dsl.IsPermanent(a.Err) {
		p.next = p.next.Sooner(time.Until(again), queue.Due)
	}
	if a.Unread {
		p.next = p.next.Sooner(p.r.family.Look(), queue.Resync) // no event says that children can be read
	}
	return before
}

// filterOf stands for a handler's filters among those of which the log tells that they fail.
func filterOf(handler string) string { return "filter " + handler }

// sayFilterFailed says that a filter failed: in the log once, and on the object unless children alone could not be
// read, which passes.
func (p *run) sayFilterFailed(handler string, a filter.Answer, before bool) {
	f := p.failure(p.log().WithValues("handler", handler), handler, a.Err)
	f.Line, f.Grave, f.Known = "filter failed; the handler does not see the object", true, before
	p.memory.Troubles.Say(p.r.texts, filterOf(handler), f)
	if !before && !a.Unread && p.deletion == "" {
		p.r.engine.events.Warn(p.object, handler, pass.FilterFailed,
			fmt.Sprintf("Handler %s does not see this object, for its filter failed: %v", handler, a.Err))
	}
}

// wantsFinalizer reports whether a delete handler runs before the object goes, a daemon ends before, or the engine deletes or
// releases children. Where that is not known, the finalizer stays as it is.
func (p *run) wantsFinalizer() bool {
	held := slices.Contains(p.family.Base().GetFinalizers(), p.r.rules.Finalizer)
	return p.r.rules.Finalizes && p.handlersHold() || p.family.Holds(held)
}

// handlersHold is wantsFinalizer for the handlers alone.
func (p *run) handlersHold() bool {
	for _, r := range p.r.rules.Readers {
		if !r.On(dsl.Delete) || r.NoFinalizer {
			continue
		}
		if a := p.sees(r, dsl.Delete); a.Holds || a.Err != nil && p.finalizer() {
			return true
		}
	}
	return slices.ContainsFunc(p.r.rules.Daemons, p.wantsEnd)
}

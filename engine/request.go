// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/collision"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// subject makes what handlers and filters are asked about, from the facts alone, whoever found them out. What there is
// to be read beside the object is the caller's to add.
func (r *resource) subject(f facts, d pass.Draft, h *dsl.Handler, c dsl.Cause, try book.Record) *dsl.Subject {
	return &dsl.Subject{
		Object: d.Current.DeepCopy(), Handler: h.ID, Cause: c, Attempt: try.Attempts + 1, Made: r.spec.Makes, Now: f.now,
		Log: r.logOf(f, attempt.About{Handler: h.ID, Cause: c, Attempt: try.Attempts + 1}),
	}
}

// subject is what a handler and its filters are asked about in this pass.
func (p *run) subject(r book.Reader, c dsl.Cause, try book.Record, children dsl.ChildReader, indexes dsl.Indexes) *dsl.Subject {
	out := p.r.subject(p.facts, p.Draft, r.Handler, c, try)
	out.Children, out.Related, out.Indexes, out.Secrets = children, p.related, indexes, r.Secrets
	if !p.resourceWide() {
		out.Kept = p.r.spec.Kept()
	}
	if c == dsl.Event {
		out.Event = p.memory.Event
	}
	if c != dsl.Create && !p.resourceWide() {
		attempt.Recall(out, r, p.ledger.Old(r, p.Look), p.Look)
	}
	return out
}

// request is what a handler gets for an attempt, which may write in the span.
func (p *run) request(j *pass.Job, s *transport.Span) *dsl.Request {
	var children dsl.Children
	if p.resourceWide() {
		children = apply.None(errNoObject)
	} else {
		children = p.family.For(s, collision.Attempt{Handler: j.Reader.ID, Try: string(j.Cause) + "/" + j.Record.View, Turns: p.jobs.Turns(j)})
	}
	request := &dsl.Request{
		Subject: *p.subject(j.Reader, j.Cause, j.Record, children, p.indexes.For(j.Reader.ID, "")), Children: children,
		Step: j.Record.Step, Patch: dsl.NewPatch(), Client: p.client(j.Reader.Handler, s),
		Memo: p.memory.Kept(), OperatorMemo: &p.r.engine.memo,
	}
	if p.resourceWide() {
		p.r.withoutObject(request, s)
	} else {
		request.Events = p.r.engine.events.Reporter(p.object, j.Reader.ID, func() bool { return s.Over() || s.Lost() })
	}
	return request
}

// discreet returns the context for what handlers write: answers of the API server are not quoted where one of them may read Secrets.
func discreet(ctx context.Context, readers ...book.Reader) context.Context {
	if slices.ContainsFunc(readers, func(r book.Reader) bool { return r.Secrets.Read }) {
		return dsl.Discreetly(ctx)
	}
	return ctx
}

// show makes a draft what handlers see from here on.
func (p *run) show(d pass.Draft) {
	if d.Current != p.Current {
		p.filters.Reset()
	}
	p.Draft = d
}

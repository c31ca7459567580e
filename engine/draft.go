// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/claim"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// subject makes what handlers and filters are asked about, from the facts alone, whoever found them out. What there is
// to be read beside the object is the caller's to add.
func (r *resource) subject(f facts, d draft, h *dsl.Handler, c dsl.Cause, try progress.Record) *dsl.Subject {
	return &dsl.Subject{
		Object: d.current.DeepCopy(), Handler: h.ID, Cause: c, Attempt: try.Attempts + 1, Made: r.spec.Makes, Now: f.now,
		Log: r.logOf(f, "handler", h.ID, "cause", string(c), "attempt", try.Attempts+1),
	}
}

// subject is what a handler and its filters are asked about in this pass.
func (p *pass) subject(r book.Reader, c dsl.Cause, try progress.Record, children dsl.ChildReader, indexes dsl.Indexes) *dsl.Subject {
	out := p.r.subject(p.facts, p.draft, r.Handler, c, try)
	out.Children, out.Related, out.Indexes = children, p.related, indexes
	if c == dsl.Event {
		out.Event = p.memory.Event
	}
	if c != dsl.Create && !p.resourceWide() {
		attempt.Recall(out, r, p.ledger.Old(r), p.look)
	}
	return out
}

// request is what a handler gets for an attempt, which may write in the span.
func (p *pass) request(j *plan.Job, s *fence.Span) *dsl.Request {
	var children dsl.Children
	if p.resourceWide() {
		children = child.None(errNoObject)
	} else {
		children = p.family.For(s, claim.Attempt{Handler: j.Reader.ID, Try: string(j.Cause) + "/" + j.Record.View, Turns: p.jobs.Turns(j)})
	}
	request := &dsl.Request{
		Subject: *p.subject(j.Reader, j.Cause, j.Record, children, p.indexes.For(j.Reader.ID, "")), Children: children,
		Step: j.Record.Step, Patch: dsl.NewPatch(), Client: p.client(j.Reader.Handler, s),
		Memo: p.memory.Kept(), OperatorMemo: &p.r.engine.memo,
	}
	if p.resourceWide() {
		p.r.withoutObject(request, s)
	} else {
		request.Events = p.r.engine.events.Reporter(p.object, j.Reader.ID, s.Over)
	}
	return request
}

// draft is an object as handlers see it: with what those before them in the pass want of it.
type draft struct {
	// patch is what they want, with what transformations make of the object in their place.
	patch   *dsl.Patch
	current *unstructured.Unstructured
	// look is a look at the current object.
	look *book.Look
}

// draftOf returns the draft of which nobody wants anything yet.
func draftOf(o *unstructured.Unstructured) draft {
	return draft{patch: dsl.NewPatch(), current: o, look: book.NewLook(o.Object)}
}

// with returns the draft with what one more handler wants, in a pass with these facts. The patch is joined in place. The
// error is that of a transformation: then the draft is as it was.
func (d draft) with(wants *dsl.Patch, f facts) (draft, error) {
	wants, err := patch.Resolve(d.current, wants, f.object.GetGeneration(), f.now)
	if err != nil {
		return d, err
	}
	d.patch.Join(wants)
	if wants.Empty() {
		return d, nil
	}
	if change := patch.Change(d.current, wants, f.object.GetGeneration(), f.now); len(change) > 0 {
		d.current = &unstructured.Unstructured{Object: plain.Patched(d.current.Object, change)}
		d.look = book.NewLook(d.current.Object)
	}
	return d, nil
}

// show makes a draft what handlers see from here on.
func (p *pass) show(d draft) {
	if d.current != p.current {
		p.filters.Reset()
	}
	p.draft = d
}

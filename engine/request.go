// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cause"
	"github.com/handwerk-dev/handwerk/engine/claim"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// request makes what a handler gets for a cause from the facts alone, whoever found them out. What it reads beside the
// object, and how it writes, is the caller's to add.
func (r *resource) request(f facts, d draft, h *dsl.Handler, c dsl.Cause, try progress.Record) *dsl.Request {
	return &dsl.Request{
		Object: d.current.DeepCopy(), Cause: c, Attempt: try.Attempts + 1, Step: try.Step,
		Patch: dsl.NewPatch(), Made: r.spec.Made(), Now: f.now,
		Log: r.logOf(f).WithValues("handler", h.ID, "cause", string(c), "attempt", try.Attempts+1),
	}
}

// recall gives a request what its handler handled last, and how that differs from what is there now.
func recall(request *dsl.Request, r book.Reader, old map[string]any, now *book.Look) {
	if old == nil {
		return
	}
	request.Old = runtime.DeepCopyJSON(old)
	changes := cause.Diff(request.Old, runtime.DeepCopyJSON(now.Kept(r.View)))
	paths := r.View.Fields
	if len(paths) == 0 {
		request.Diff = changes
	}
	for _, path := range paths {
		request.Diff = append(request.Diff, cause.Within(changes, path)...)
	}
}

// reading is a request without a way to write.
func (p *pass) reading(r book.Reader, c dsl.Cause, try progress.Record) *dsl.Request {
	request := p.r.request(p.facts, p.draft, r.Handler, c, try)
	if p.whole() {
		return request
	}
	request.Related = p.related
	if c == dsl.Event {
		request.Event = p.memory.event
	}
	if c != dsl.Create {
		recall(request, r, p.ledger.Old(r), p.look)
	}
	return request
}

// handling is the request for an attempt, which may write in the span.
func (p *pass) handling(j *plan.Job, s *fence.Span) *dsl.Request {
	request := p.reading(j.Reader, j.Cause, j.Record)
	request.Client = p.client(j.Reader.Handler, s)
	if p.whole() {
		p.r.asWhole(request, s)
		return request
	}
	request.Children = p.family.For(s, claim.Attempt{Handler: j.Reader.ID, Try: string(j.Cause) + "/" + j.Record.View, Turns: p.jobs.Turns()})
	request.Events = p.r.engine.events.Reporter(p.object, j.Reader.ID, s.Over)
	return request
}

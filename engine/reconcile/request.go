// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// subject returns the subject of a handler and its filters, with the object of the draft.
func (p *run) subject(d Draft, r progress.Handler, c dsl.Cause, try progress.Record, children dsl.ChildReader, indexes dsl.Indexes) *dsl.Subject {
	out := p.plainSubject(d, r, c, try, children, indexes)
	if out.Kept == nil {
		out.Kept = p.Rules.Spec.Kept()
	}
	if c == dsl.Event {
		out.Event = p.memory.Event
	}
	if c != dsl.Create {
		attempt.Recall(out, r, p.progress.Old(r, d.Look), d.Look)
	}
	return out
}

// plainSubject is subject without the old state, the event and the default of kept fields.
func (p *run) plainSubject(d Draft, r progress.Handler, c dsl.Cause, try progress.Record, children dsl.ChildReader, indexes dsl.Indexes) *dsl.Subject {
	return &dsl.Subject{
		Object: dsl.Shown(d.Current, r.Sees), Kept: r.Sees, Prefix: p.Rules.Prefix, Handler: r.ID, Cause: c, Attempt: try.Attempts + 1, Made: p.Rules.Spec.Makes, Now: p.Now,
		Log:      p.logOf(p.Input, attempt.About{Handler: r.ID, Cause: c, Attempt: try.Attempts + 1}),
		Children: children, Related: p.related, Indexes: indexes, Outcomes: d.Look.Outcomes(), Secrets: r.Secrets,
	}
}

// request returns the request for an attempt. The attempt may write while the span lasts.
func (p *run) request(st State, j *Attempt, span *transport.Span) *dsl.Request {
	children := p.family.For(span, collision.Attempt{Handler: j.Reader.ID, Try: string(j.Cause) + "/" + j.Record.View, Number: len(st.Attempts)}, &snapshot{p, st, j})
	out := p.requestFor(p.subject(st.Draft, j.Reader, j.Cause, j.Record, children, p.indexes.For(j.Reader.ID, "")), j, span)
	out.Children, out.Targets = children, p.family.Targets(span, j.Reader.ID)
	reporter := p.Observer.Events.Reporter(p.Object, j.Reader.ID, reporting{span})
	if out.Events = reporter; p.Rules.Operator.Settings.Events == dsl.EventsLog {
		out.Log = reporter.Logging(out.Log)
	}
	return out
}

// requestFor returns a request for a subject, without children and Events.
func (p *run) requestFor(s *dsl.Subject, j *Attempt, span *transport.Span) *dsl.Request {
	return &dsl.Request{
		Subject: *s, Step: j.Record.Step, Patch: dsl.NewPatch(), Client: p.Others.For(span, others{p, j.Reader.ID}),
		Memo: p.memory.Kept(), OperatorMemo: p.Memo,
	}
}

// others notes the handler's writes, by its client, to objects that are not its children.
type others struct {
	run     *run
	handler string
}

// Wrote notes a write.
func (o others) Wrote(operation apply.Operation, gvr schema.GroupVersionResource, written *unstructured.Unstructured) {
	o.run.family.WroteOther(o.handler, operation, gvr, written)
}

// Deleted notes a deletion.
func (o others) Deleted(kind string, gvr schema.GroupVersionResource, key cache.ObjectName) {
	if key == o.run.Key && gvr == o.run.Own.Resource().GVR {
		o.run.deleted.Store(true)
	}
	o.run.family.DeletedOther(o.handler, kind, gvr, key)
}

// discreet returns a context in which the API server's answers are not quoted if one of the handlers may read Secrets.
func discreet(ctx context.Context, readers ...progress.Handler) context.Context {
	if slices.ContainsFunc(readers, func(r progress.Handler) bool { return r.Secrets.Read }) {
		return dsl.Discreetly(ctx)
	}
	return ctx
}

// reporting ends an attempt's Events when the process stops leading.
type reporting struct{ *transport.Span }

// Over reports whether the attempt may send no further Events.
func (r reporting) Over() bool { return r.Span.Over() || r.Lost() }

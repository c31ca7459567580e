// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/conditions"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/plan"
)

// sayFailing asks for the condition that says which handlers fail, or for its end.
func (p *pass) sayFailing(marks *patch.Marks) {
	if p.gone || p.r.rules.Ledger.Partial {
		return // what other conditions there are is not known
	}
	said := conditions.SaidOf(p.object, p.r.engine.op.Name)
	if said.Foreign() {
		return
	}
	var handlers []conditions.Handler
	for _, r := range p.r.rules.Readers {
		if !p.tellsItself(r) {
			handlers = append(handlers, p.standingOf(r, slices.Contains(said.Named, r.ID)))
		}
	}
	set, mended, failing := said.Next(handlers, p.memory.Owes)
	p.memory.Owes = p.memory.Owes && failing
	if marks.Condition = set; mended {
		marks.Mended = conditions.Failing
	}
}

// standingOf says how a handler fares. Filters of one that the condition names are asked again when this process has
// not heard of them.
func (p *pass) standingOf(reader book.Reader, named bool) conditions.Handler {
	h, r := reader.Handler, p.jobs.Record(reader, p.ledger.Entry(reader))
	out := conditions.Handler{ID: h.ID, Undecided: !r.Done && r.Attempts > 0}
	if j := p.jobs.Of(reader); j != nil {
		out.Ran = j.Ran
	}
	switch {
	case r.Failed:
		out.Reason, out.Message = conditions.Failed, r.Message
	case plan.Fails(r):
		out.Reason, out.Message = conditions.Retried, r.Message
	default:
		if named && h.When != nil && p.memory.Filters.Of(h) == "" {
			p.sees(reader, plan.AskFor(h))
		}
		if text := p.memory.Filters.Of(h); text != "" {
			out.Reason, out.Message = conditions.FilterFailed, text
		}
	}
	return out
}

// tellsItself reports whether a handler has a condition of its own in which it says that it fails.
func (p *pass) tellsItself(r book.Reader) bool {
	j := p.jobs.Of(r)
	return j != nil && j.Offers || slices.ContainsFunc(r.Needs, func(n dsl.Need) bool { return n.Offered })
}

// restate states anew what handlers said of an earlier generation, where nothing that they look at has
// changed since: they need not run, and what they said is true of this one. A condition of an earlier
// generation is out of date by Kubernetes' conventions. Where there is no status subresource each write is
// another generation, so it would never come to an end.
func (p *pass) restate() {
	if p.deletion != "" || !p.r.own.Resource().Status {
		return
	}
	for _, c := range conditions.Earlier(p.object) {
		said := slices.ContainsFunc(p.patch.Conditions, func(now metav1.Condition) bool { return now.Type == c.Type })
		if !said && p.holdsOn(c.Type) {
			p.patch.SetCondition(c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

// holdsOn reports whether a condition is that of a handler which sees the object and rests. It is not where
// another one that sets it is about to say otherwise, or has failed.
func (p *pass) holdsOn(kind string) bool {
	holds := false
	for _, r := range p.r.rules.Readers {
		if !slices.Contains(r.Conditions, kind) || !p.sees(r, plan.AskFor(r.Handler)).Holds {
			continue
		}
		e := p.ledger.Entry(r)
		if p.jobs.Of(r) != nil || e.Lost != "" {
			return false
		}
		holds = holds || r.Steady && !e.Met && e.Seen == p.look.Digest(r.View)
	}
	return holds
}

// keepsSaying reports whether a condition is not to be retired: a handler is known to set it, or it was looked at before.
func (p *pass) keepsSaying(kind string) bool {
	sets := func(r book.Reader) bool { return slices.Contains(r.Conditions, kind) }
	return slices.Contains(p.memory.Settled, kind) || slices.ContainsFunc(p.r.rules.Readers, sets)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/conditions"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// sayFailing asks for the condition that says which handlers fail, or for its end.
func (p *pass) sayFailing(marks *patch.Marks) {
	if p.gone || p.r.rules.ledger.Partial {
		return // what other conditions there are is not known
	}
	said := conditions.SaidOf(p.object, p.r.engine.op.Name)
	if said.Foreign() {
		return
	}
	var handlers []conditions.Handler
	for _, r := range p.r.rules.readers {
		if !p.tellsItself(r) {
			handlers = append(handlers, p.standingOf(r, slices.Contains(said.Named, r.ID)))
		}
	}
	set, mended, failing := said.Next(handlers, p.memory.owes)
	p.memory.owes = p.memory.owes && failing
	if marks.Condition = set; mended {
		marks.Mended = conditions.Failing
	}
}

// standingOf says how a handler fares. Filters of one that the condition names are asked again when this process has
// not heard of them.
func (p *pass) standingOf(reader book.Reader, named bool) conditions.Handler {
	h, r := reader.Handler, p.recordOf(reader)
	out := conditions.Handler{
		ID: h.ID, Undecided: !r.Done && r.Attempts > 0,
	}
	if j := p.jobs.Of(reader); j != nil {
		out.Ran = j.Ran
	}
	switch {
	case r.Failed:
		out.Reason, out.Message = conditions.Failed, r.Message
	case fails(r):
		out.Reason, out.Message = conditions.Retried, r.Message
	default:
		if named && h.When != nil && p.memory.filters.Of(h) == "" {
			p.sees(reader, causeOf(h))
		}
		if text := p.memory.filters.Of(h); text != "" {
			out.Reason, out.Message = conditions.FilterFailed, text
		}
	}
	return out
}

// causeOf is a cause of the handler to ask its filters with.
func causeOf(h *dsl.Handler) dsl.Cause {
	for _, c := range []dsl.Cause{dsl.Update, dsl.Create, dsl.Delete} {
		if h.On(c) {
			return c
		}
	}
	return dsl.Resume
}

// tellsItself reports whether a handler has a condition of its own in which it says that it fails.
func (p *pass) tellsItself(r book.Reader) bool {
	j := p.jobs.Of(r)
	return j != nil && j.Offers || slices.ContainsFunc(r.Needs, func(n dsl.Need) bool { return n.Offered })
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/why"
)

// explain says why the handlers of the pass's object ran or not, once the pass has ended.
func (p *pass) explain(out Result) *why.Answer {
	a := p.Answer(p.Key)
	if out.Due.After > 0 {
		a.Due = moment(a.At.Add(out.Due.After))
	}
	reasons := out.Reasons(p.Rules.Readers)
	for i, r := range p.Rules.Readers {
		p.account(&a.Handlers[i], out, r, reasons[i])
	}
	for _, r := range p.Rules.Daemons {
		a.Handlers = append(a.Handlers, p.daemonAccount(r))
	}
	return a
}

// account says of a handler what came of it in the pass, and how far it is.
func (p *pass) account(h *why.Handler, out Result, r book.Handler, w Why) {
	record := out.Jobs.Record(r, p.ledger.Entry(r))
	f := why.Facts{
		Handler: r.ID, Reason: string(w.Reason), Detail: w.Detail, Cause: string(w.Cause),
		Attempts: record.Worst(), Message: record.Message, Failed: record.Failed, Waits: record.Waiting && !record.Done,
	}
	if record.Done && !record.Failed {
		f.Attempts = 0
	}
	h.Reason, h.Cause = string(w.Reason), string(w.Cause)
	h.Attempts, h.Message = f.Attempts, record.Message
	if !record.Done && record.Due.After(time.Now()) {
		h.Next = moment(record.Due)
	}
	h.Filters = p.filtersOf(r)
	h.Says = why.Sentence(f)
}

// filtersOf are a handler's filters with their answers for the object as the pass leaves it.
func (p *pass) filtersOf(r book.Handler) (out []why.Filter) {
	object := p.published.Current
	for _, m := range r.Labels {
		out = append(out, matchOf("label", m, object.GetLabels()))
	}
	for _, m := range r.Annotations {
		out = append(out, matchOf("annotation", m, object.GetAnnotations()))
	}
	if r.When == nil {
		return out
	}
	c := AskFor(r.Handler)
	if r.Daemon != nil {
		c = dsl.Running
	}
	one := why.Filter{Text: "when"}
	indexes := p.Indexes.View(p.Key, false, false) // which remembers nothing of what is read
	holds, err := attempt.Ask(r.When, p.subject(p.published.Draft, r, c, p.ledger.Entry(r).Try, p.family.Reader(), indexes.For(r.ID, c)))
	switch one.Holds = holds && err == nil; {
	case err != nil:
		one.Says = err.Error()
	case !holds:
		one.Says = "it is false"
	}
	return append(out, one)
}

// matchOf is a filter on a label or an annotation.
func matchOf(what string, m dsl.Match, set map[string]string) why.Filter {
	out := why.Filter{Text: what + " " + m.Key, Holds: m.Matches(set)}
	if !out.Holds {
		out.Says = filter.Mismatch(m, set)
	}
	return out
}

// daemonAccount says of a daemon whether it runs.
func (p *pass) daemonAccount(r book.Handler) why.Handler {
	return why.Handler{ID: r.ID, Daemon: true, Filters: p.filtersOf(r)}
}

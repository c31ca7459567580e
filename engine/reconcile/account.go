// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// explain answers why the handlers ran or not, after a run.
func (p *run) explain(out Result) *why.Answer {
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
	p.around(a, out)
	return a
}

// account fills in the answer about one handler: its reason, and the state of its attempts.
func (p *run) account(h *why.Handler, out Result, r progress.Handler, w Why) {
	record := out.Attempts.Record(r, p.progress.Entry(r))
	if w.Reason == why.NothingDue && !record.Failed {
		w.Reason, h.Next = p.nextOf(r)
	}
	f := why.Facts{
		Handler: r.ID, Reason: w.Reason, Detail: w.Detail, Cause: string(w.Cause),
		Attempts: record.Failures(), Message: record.Message, Failed: record.Failed, Waits: record.Waiting && !record.Done,
	}
	if record.Done && !record.Failed {
		f.Attempts = 0
	}
	h.Reason, h.Cause = w.Reason.String(), string(w.Cause)
	h.Attempts, h.Message = f.Attempts, record.Message
	if !record.Done && record.Due.After(time.Now()) {
		h.Next = moment(record.Due)
	}
	h.Clauses = r.Explain(p.askedAbout(r))
	if w.Reason == why.WhenFalse {
		f.Detail = why.Decided(h.Clauses)
	}
	if w.Reason == why.NothingDue && p.Deletion != "" {
		f.Reason = why.NoDeletion
	}
	h.State, h.Says = f.State(), why.Sentence(f)
}

// nextOf returns when an idle handler runs by time; the time is nil if it does not.
func (p *run) nextOf(r progress.Handler) (why.Reason, *time.Time) {
	if r.AtTime() && p.Deletion == "" {
		switch m := p.appointmentOf(p.bareDraft, r); {
		case m.err == nil && m.at.IsZero():
			return why.NoTime, nil
		case m.err == nil && m.at.After(p.Now):
			return why.NotYet, &m.at
		}
	}
	if at := p.tickOf(r); !at.IsZero() {
		return why.NotYet, &at
	}
	return why.NothingDue, nil
}

// tickOf returns when a timer runs next; zero for never.
func (p *run) tickOf(r progress.Handler) time.Time {
	i := slices.IndexFunc(p.Rules.Timers, func(t progress.Handler) bool { return t.Handler == r.Handler })
	if i < 0 || i >= len(p.memory.Ticks) {
		return time.Time{}
	}
	return p.memory.Ticks[i].Due()
}

// askedAbout returns the subject for explaining a handler's conditions. Its reads are not recorded.
func (p *run) askedAbout(r progress.Handler) *dsl.Subject {
	c := askFor(r.Handler)
	if r.Daemon != nil {
		c = dsl.Running
	}
	indexes := p.Indexes.View(p.Key, false, false)
	return p.subject(p.bareDraft, r, c, p.progress.Entry(r).Try, p.family.Reader(), indexes.For(r.ID, c))
}

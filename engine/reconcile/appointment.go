// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// appointment is the time at which a handler is to run, computed from its object; see dsl.Timing.At. It is computed in each reconcile, so
// nothing but the queue remembers it, and it moves with the object.
type appointment struct {
	// of is the object that it was computed from.
	of *unstructured.Unstructured
	// at is zero where the object gives no time, and where err says that it could not be computed.
	at  time.Time
	err error
	// arrived: the time has come, and the handler has not run for it.
	arrived bool
}

// appointmentOf returns the time of a handler for the object as the draft has it. It is computed once for each state of the object.
func (p *run) appointmentOf(d Draft, r progress.Handler) appointment {
	if known, is := p.appointments[r.Handler]; is && known.of == d.Current {
		return known
	}
	if p.appointments == nil {
		p.appointments = map[*dsl.Handler]appointment{}
	}
	m := p.workOut(d, r)
	p.appointments[r.Handler] = m
	return m
}

// workOut computes the time of a handler, and remembers nothing.
func (p *run) workOut(d Draft, r progress.Handler) appointment {
	m := appointment{of: d.Current}
	m.at, m.err = attempt.Moment(r.Timing.At, p.subject(d, r, dsl.Timer, progress.Record{}, p.family.Reader(), p.indexes.For(r.ID, dsl.Timer)))
	return m
}

// appoint finds out whether the time of a handler has come, and returns its entry in the progress, without work for a time that has
// moved on. It is for handlers with a time from their object.
func (p *run) appoint(st State, r progress.Handler, e progress.Entry) (progress.Entry, appointment) {
	m := p.appointmentOf(st.Draft, r)
	q := filter.Question{Handler: r.Handler, Cause: dsl.Timer, Time: true}
	if m.err != nil {
		p.appointmentFailed(st.Draft, q, r, m.err)
		return e, m
	}
	p.memory.Filters.Answered(q)
	e = e.Appoint(m.at, p.Now)
	m.arrived = e.Arrived(m.at, p.Now, st.Look.Digest(r.View))
	return e, m
}

// appointmentFailed deals with a time that could not be computed, as with a filter that failed: it is computed again after the
// handler's back-off, and when the object changes.
func (p *run) appointmentFailed(d Draft, q filter.Question, r progress.Handler, err error) {
	note := Note{Kind: FilterFails, Action: r.ID, Handler: r.ID, Err: err, Line: "computing the time of the handler failed; it does not run by time"}
	if note.Known = p.retryFilter(d, q, r, filter.Answer{Err: err}); !note.Known {
		note.Reason, note.Message = FilterFailed, fmt.Sprintf("Handler %s does not run by time for this object: %v", r.ID, err)
	}
	p.filters.notes = append(p.filters.notes, note)
}

// windAppointments sets when the handlers are due that run at a time from the object, as the reconcile leaves that.
func (p *run) windAppointments(st State) State {
	if p.Deletion != "" {
		return st
	}
	for _, r := range p.Rules.AtTimes {
		m := p.appointmentOf(st.Draft, r)
		switch {
		case m.err != nil:
		case m.at.After(p.Now):
			st.Due = st.Due.Sooner(time.Until(m.at), queue.Due)
		case p.ledger.Entry(r).Arrived(m.at, p.Now, st.Look.Digest(r.View)) && p.passedOver(st, r):
			st.Due = st.Due.AtOnce()
		}
	}
	return st
}

// passedOver reports whether a handler had no turn for its time in this reconcile: the time came when others had changed the object, or
// the handler ran for another cause.
func (p *run) passedOver(st State, r progress.Handler) bool {
	if j := st.Jobs.Of(r); j != nil {
		return j.Cause != dsl.Timer && j.Record.Done
	}
	return !slices.ContainsFunc(st.Why, func(w Why) bool { return w.Handler == r.ID })
}

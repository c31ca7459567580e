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
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// appointment is the time at which a handler runs, computed from its object; see dsl.Timing.At. Each reconcile computes
// it, so it moves with the object, and nothing but the queue remembers it.
type appointment struct {
	// of is the object that it was computed from.
	of *unstructured.Unstructured
	// at is zero if the object gives no time, or if computing it failed.
	at  time.Time
	err error
	// arrived: the time has come, and the handler has not run for it.
	arrived bool
}

// appointmentOf returns the time of a handler for the object of a draft. It is computed once for each version of the
// object.
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

// workOut computes the time of a handler without caching it.
func (p *run) workOut(d Draft, r progress.Handler) appointment {
	m := appointment{of: d.Current}
	m.at, m.err = attempt.Moment(r.Timing.At, p.subject(d, r, dsl.Timer, progress.Record{}, p.family.Reader(), p.indexes.For(r.ID, dsl.Timer)))
	return m
}

// appoint computes whether the time of a handler with an `at` expression has come. It returns the handler's entry,
// without work for a time that has moved.
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

// appointmentFailed reports a time that could not be computed. Like a failed filter, it is computed again after the
// handler's back-off, and when the object changes.
func (p *run) appointmentFailed(d Draft, q filter.Question, r progress.Handler, err error) {
	note := Note{Kind: FilterFails, Action: r.ID, Handler: r.ID, Err: err, Line: "computing the time of the handler failed; it does not run by time"}
	if note.Known = p.retryFilter(d, q, r, filter.Answer{Err: err}); !note.Known {
		note.Reason, note.Message = conditions.FilterFailed, fmt.Sprintf("Handler %s does not run by time for this object: %v", r.ID, err)
	}
	p.filters.notes = append(p.filters.notes, note)
}

// scheduleAppointments schedules the handlers with an `at` expression, for the object after the reconcile.
func (p *run) scheduleAppointments(st State) State {
	if p.Deletion != "" {
		return st
	}
	for _, r := range p.Rules.AtTimes {
		m := p.appointmentOf(st.Draft, r)
		switch {
		case m.err != nil:
		case m.at.After(p.Now):
			st.Due = st.Due.Sooner(time.Until(m.at), queue.Due)
		case p.progress.Entry(r).Arrived(m.at, p.Now, st.Look.Digest(r.View)) && p.passedOver(st, r):
			st.Due = st.Due.AtOnce()
		}
	}
	return st
}

// passedOver reports whether a handler did not run for its time in this reconcile: an earlier handler's change made the
// time come, or the handler ran for another cause.
func (p *run) passedOver(st State, r progress.Handler) bool {
	if j := st.Attempts.Of(r); j != nil {
		return j.Cause != dsl.Timer && j.Record.Done
	}
	return !slices.ContainsFunc(st.Why, func(w Why) bool { return w.Handler == r.ID })
}

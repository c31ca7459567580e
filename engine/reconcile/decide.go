// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// decide returns what a handler has to do, nil for nothing. The state has the reason of one that is due and does not run.
func (p *run) decide(ctx context.Context, st State, r progress.Handler) (State, *Attempt) {
	e := p.entry(st, r)
	s := p.situation(st, r)
	var m appointment
	if r.AtTime() && p.Deletion == "" {
		e, m = p.appoint(st, r, e)
		s.Fires = s.Fires || m.arrived
	}
	e, c := Decide(r.Handler, e, s)
	if w, none := p.noTurn(r, c, m); none {
		p.ledger.Put(r, e)
		if !w.Reason.None() {
			st.Why = append(st.Why, w)
		}
		return st, nil
	}
	j := Begin(r, c, e, s.Facts)
	j.At = m.at
	j.Soon = s.Again && p.memory.Again.Of(r.ID).Soon()
	if c != dsl.Delete && (!r.Stores() || !c.Lasting()) {
		e = j.Entry // it is remembered from here on, should it match later
	}
	p.ledger.Put(r, e)
	if p.outcomesRead != nil {
		if other := p.missingOutcome(st, r); other != "" {
			st.Why = append(st.Why, Why{Handler: r.ID, Cause: c, Reason: why.OutcomeMissing, Detail: other})
			return st, nil
		}
	}
	st, a := p.matches(ctx, st, j)
	if !a.Holds {
		st.Why = append(st.Why, turnedAway(j, a, st.Current))
		return st, nil
	}
	return st, j
}

// noTurn reports whether a handler has no turn in this reconcile, and why. The reason is empty where nothing has come up for it.
func (p *run) noTurn(r progress.Handler, c dsl.Cause, m appointment) (w Why, none bool) {
	switch {
	case m.err != nil && (c == "" || c == dsl.Timer):
		return Why{Handler: r.ID, Cause: dsl.Timer, Reason: why.TimeFails, Detail: m.err.Error()}, true
	case c == "":
		return Why{}, true
	case c == dsl.Delete && p.daemonsEnd():
		return Why{Handler: r.ID, Cause: c, Reason: why.DaemonsFirst}, true
	}
	return Why{}, false
}

// entry returns a handler's entry in the progress. If the handler begins with the object, the entry has the object as it is. Its when
// need not hold for that: the change that makes it true is one for the handler. A when that fails is asked until it answers.
func (p *run) entry(st State, r progress.Handler) progress.Entry {
	e := p.ledger.Entry(r)
	unanswered := e.AsFound && p.memory.Filters.Of(r.Handler) != ""
	if p.Deletion != "" || !e.NewHandler && !unanswered {
		return e
	}
	a := p.askFilters(st.Draft, r, dsl.Update)
	if a.Err != nil && e.NewHandler && e.ToCreate(r, st.Look) {
		p.filters.Due(r.ID)
	}
	if e.NewHandler && (a.Holds || !e.NewObject && filter.Chooses(r.Handler, st.Current)) {
		e = e.Introduce(r, st.Look, p.ledger.Known(), p.othersMake(st, r))
	}
	return e
}

// situation finds out what has come up for a handler.
func (p *run) situation(st State, r progress.Handler) Situation {
	n := st.Found
	var again *Alarm
	if p.memory.Again != nil {
		again = p.memory.Again.Of(r.ID)
	}
	return Situation{
		Facts: p.factsFor(st, r), Pass: p.Now,
		Child: p.Changes.Child, Related: p.related.Changed(), Index: p.indexes.Changed(r.ID), Unseen: !p.memory.Seen,
		Named: slices.Contains(n.Named, r.ID), Resync: n.Resync,
		Fires: n.Clock.Fires(r), Granted: slices.Contains(p.Changes.Granted, r.ID),
		Again:    again.Passed(p.Now),
		Chosen:   !r.Level() || filter.Chooses(r.Handler, st.Current), // no other code asks
		Gone:     p.Gone,
		Released: p.Deletion != "" && !p.Gone && !p.finalizer(),
	}
}

// factsFor returns the facts that a handler's entry is compared with. The progress says whether an object is new. Without progress, it
// is new to a handler that stores nothing if it is fresh, or if some handler sees it that would have left progress.
func (p *run) factsFor(st State, r progress.Handler) progress.Facts {
	f := p.ledger.Facts(r, st.Look)
	if !f.New || !f.First || p.Changes.Fresh || !r.On(dsl.Resume) {
		return f
	}
	if p.marks == nil {
		marks := slices.ContainsFunc(p.Rules.Readers, func(other progress.Handler) bool {
			if !other.Stores() {
				return false
			}
			holds, err := p.asks(st.Draft, other, askFor(other.Handler)) // the answer is not kept: what handlers do may change it
			return holds && err == nil
		})
		p.marks = &marks
	}
	f.New = *p.marks
	return f
}

// othersMake reports whether others are still to be tried again for the object's creation, or wait for such a one: they may write
// what this one looks at.
func (p *run) othersMake(st State, r progress.Handler) bool {
	return slices.ContainsFunc(p.Rules.Readers, func(other progress.Handler) bool {
		e := p.ledger.Entry(other)
		if other.ID == r.ID || e.Handled != "" || !other.On(dsl.Create) {
			return false
		}
		return e.Try.Begun() || e.ToCreate(other, st.Look) && p.blocker(st, other.Handler) != ""
	})
}

// turnedAway says why a handler's filters keep it from running. Object is as the handler sees it.
func turnedAway(j *Attempt, a filter.Answer, object *unstructured.Unstructured) Why {
	w := Why{Handler: j.Reader.ID, Cause: j.Cause, Reason: why.WhenFalse}
	switch unmatched := filter.Unmatched(j.Reader.Handler, object, j.Reader.Secrets.In([]string{"self"})); {
	case a.Err != nil:
		w.Reason, w.Detail = why.WhenFails, a.Err.Error()
	case unmatched != "":
		w.Reason, w.Detail = why.NotMatched, unmatched
	}
	return w
}

// Situation is what has come up for one handler.
type Situation struct {
	progress.Facts
	// Pass is the time of the reconcile.
	Pass time.Time
	// Child and Related: children and related objects have changed. Index: what the handler has read of indexes has.
	// Unseen: this process has not looked at them before.
	Child, Related, Index, Unseen bool
	// Named: this handler is to look again though others are not. Resync: the period has passed.
	Named, Resync bool
	// Fires: the handler's timer does. Granted: a right that it lacked was given.
	Fires, Granted bool
	// Again: it asked to be run again, and the time has come.
	Again bool
	// Chosen: its filters on labels and annotations hold.
	Chosen bool
	// Gone: the object is gone from sight.
	Gone bool
	// Released: the object is being deleted, and others alone hold it still.
	Released bool
}

// Decide decides what a handler is to run for, empty for nothing, and returns its entry with all that has come up.
func Decide(h *dsl.Handler, e progress.Entry, s Situation) (progress.Entry, dsl.Cause) {
	e = s.enter(h, e)
	if e.Try.Ended && s.Deletion == "" {
		return e, "" // nothing can be made in its namespace any more, whatever has changed
	}
	c := e.Due(h, s.Facts)
	t := s.triggered(h)
	switch {
	case c == "" && t != "":
		return e.WakeFor(t), t
	case t.FromOthers(), c == dsl.Delete && s.concerns(h), s.Again:
		e.Try = e.Try.TryEarly(s.Pass) // what it waits for may have come
	case c == "" && h.Level() && !s.Chosen:
		e = e.FilteredOut()
	}
	if c == dsl.Resume && s.Gone {
		c = ""
	}
	if c == dsl.Delete && s.Released && !h.NoFinalizer {
		c = "" // where the finalizer is gone, or never was, there is nothing to do for one that holds its object
	}
	return e, c
}

// enter returns a handler's entry as it is now: without waits that news have ended, and without facts of a deletion that
// is over.
func (s Situation) enter(h *dsl.Handler, e progress.Entry) progress.Entry {
	if s.Child || s.Related || s.Index || s.Named {
		e.Try = e.Try.EndWait()
	}
	if s.Granted {
		e.Try = e.Try.Granted()
	}
	if s.Deletion != "" {
		return e
	}
	e = e.Living()
	begins := func(changed bool, c dsl.Cause) bool { return (changed || s.Unseen) && h.On(c) }
	if begins(s.Child, dsl.Child) || begins(s.Related, dsl.RelatedChange) || begins(s.Index, dsl.IndexChange) {
		e.Try.Step, e.Try.Parts = 0, e.Try.Parts.Rerun() // what the first step did may not be so any more
	}
	return e
}

// concerns reports whether something beside the object has changed that a handler is known to read. In a deletion
// that is no cause, but what the handler waits for may have come.
func (s Situation) concerns(h *dsl.Handler) bool {
	return s.Child && h.Known.Reads.Children || s.Related && h.Known.Reads.Related || s.Index
}

// triggered returns the cause that a handler has by what happened beside the object, empty when there is
// none.
func (s Situation) triggered(h *dsl.Handler) dsl.Cause {
	switch {
	case s.Deletion != "":
	case (s.Child || s.Named) && h.On(dsl.Child):
		return dsl.Child
	case s.Related && h.On(dsl.RelatedChange):
		return dsl.RelatedChange
	case s.Index && h.On(dsl.IndexChange):
		return dsl.IndexChange
	case s.Fires:
		return dsl.Timer
	case s.Again:
		return dsl.Again
	case (s.Resync || s.Named) && h.On(dsl.Resync):
		return dsl.Resync
	}
	return ""
}

// askFor is a cause of the handler to ask its filters with.
func askFor(h *dsl.Handler) dsl.Cause {
	for _, c := range []dsl.Cause{dsl.Update, dsl.Create, dsl.Delete} {
		if h.On(c) {
			return c
		}
	}
	return dsl.Resume
}

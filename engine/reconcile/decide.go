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

// decide returns the attempt of a handler, or nil if nothing is due. If the handler is due and does not run, the state
// has the reason.
func (p *run) decide(ctx context.Context, st State, r progress.Handler) (State, *Attempt) {
	e := p.entry(st, r)
	s := p.situation(st, r)
	var m appointment
	if r.AtTime() && p.Deletion == "" {
		e, m = p.appoint(st, r, e)
		s.Fires = s.Fires || m.arrived
	}
	e, c := Decide(r.Handler, e, s)
	if w, none := p.isNotDue(r, c, m); none {
		p.progress.Put(r, e)
		if !w.Reason.None() {
			st.Why = append(st.Why, w)
		}
		return st, nil
	}
	j := Begin(r, c, e, s.Facts)
	j.At = m.at
	j.Soon = s.Again && p.memory.Again.Of(r.ID).Soon()
	if c != dsl.Delete && (!r.Stores() || !c.Lasting()) {
		e = j.Entry // keep the trigger, because the handler may match the object later
	}
	p.progress.Put(r, e)
	if p.outcomesRead != nil {
		if other := p.missingOutcome(st, r); other != "" {
			st.Why = append(st.Why, Why{Handler: r.ID, Cause: c, Reason: why.OutcomeMissing, Detail: other})
			return st, nil
		}
	}
	st, a := p.matches(ctx, st, j)
	if !a.Holds {
		st.Why = append(st.Why, filteredOut(j, a, st.Current))
		return st, nil
	}
	return st, j
}

// isNotDue reports whether a handler does not run in this reconcile, and why. The reason is empty if nothing is due.
func (p *run) isNotDue(r progress.Handler, c dsl.Cause, m appointment) (w Why, none bool) {
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

// entry returns a handler's entry in the progress. A new handler begins with the present state of the object, whether or
// not its `when` holds: a change that makes the `when` true is an update. If the `when` fails, it is evaluated again
// until it has an answer.
func (p *run) entry(st State, r progress.Handler) progress.Entry {
	e := p.progress.Entry(r)
	unanswered := e.AsFound && p.memory.Filters.Of(r.Handler) != ""
	if p.Deletion != "" || !e.NewHandler && !unanswered {
		return e
	}
	a := p.askFilters(st.Draft, r, dsl.Update)
	if a.Err != nil && e.NewHandler && e.ToCreate(r, st.Look) {
		p.filters.Due(r.ID)
	}
	if e.NewHandler && (a.Holds || !e.NewObject && filter.Matches(r.Handler, st.Current)) {
		e = e.Introduce(r, st.Look, p.progress.Known(), p.othersMake(st, r))
	}
	return e
}

// situation collects the triggers of a handler.
func (p *run) situation(st State, r progress.Handler) Situation {
	n := st.Found
	var again *Alarm
	if p.memory.Again != nil {
		again = p.memory.Again.Of(r.ID)
	}
	return Situation{
		Facts: p.factsFor(st, r), At: p.Now,
		Child: p.Changes.Child, Related: p.related.Changed(), Index: p.indexes.Changed(r.ID), Unseen: !p.memory.Seen,
		Named: slices.Contains(n.Named, r.ID), Resync: n.Resync,
		Fires: n.Clock.Fires(r), Granted: slices.Contains(p.Changes.Granted, r.ID),
		Again:    again.Passed(p.Now),
		Chosen:   !r.Level() || filter.Matches(r.Handler, st.Current), // other handlers do not need it
		Gone:     p.Gone,
		Released: p.Deletion != "" && !p.Gone && !p.hasFinalizer(),
	}
}

// factsFor returns the facts that a handler's entry is compared with. The progress says whether an object is new.
// Without progress, the object is new to a handler that stores nothing in two cases: it was just created, or some
// handler matches it that would have stored progress.
func (p *run) factsFor(st State, r progress.Handler) progress.Facts {
	f := p.progress.Facts(r, st.Look)
	if !f.New || !f.First || p.Changes.Fresh || !r.On(dsl.Resume) {
		return f
	}
	if p.marks == nil {
		marks := slices.ContainsFunc(p.Rules.Readers, func(other progress.Handler) bool {
			if !other.Stores() {
				return false
			}
			holds, err := p.asks(st.Draft, other, askFor(other.Handler)) // the answer is not kept, because handlers may change the object
			return holds && err == nil
		})
		p.marks = &marks
	}
	f.New = *p.marks
	return f
}

// othersMake reports whether another handler still has work for the object's creation, as a retry or behind a blocker.
// It may write fields that this handler looks at.
func (p *run) othersMake(st State, r progress.Handler) bool {
	return slices.ContainsFunc(p.Rules.Readers, func(other progress.Handler) bool {
		e := p.progress.Entry(other)
		if other.ID == r.ID || e.Handled != "" || !other.On(dsl.Create) {
			return false
		}
		return e.Try.IsUnfinished() || e.ToCreate(other, st.Look) && p.blocker(st, other.Handler) != ""
	})
}

// filteredOut returns the filter that keeps a handler from running. Object is the handler's view of it.
func filteredOut(j *Attempt, a filter.Answer, object *unstructured.Unstructured) Why {
	w := Why{Handler: j.Reader.ID, Cause: j.Cause, Reason: why.WhenFalse}
	switch unmatched := filter.Unmatched(j.Reader.Handler, object, j.Reader.Secrets.In([]string{"self"})); {
	case a.Err != nil:
		w.Reason, w.Detail = why.WhenFails, a.Err.Error()
	case unmatched != "":
		w.Reason, w.Detail = why.NotMatched, unmatched
	}
	return w
}

// Situation has the triggers of one handler in one reconcile.
type Situation struct {
	progress.Facts
	// At is the time of the reconcile.
	At time.Time
	// Child and Related: children and related objects have changed. Index: values that the handler has read from indexes
	// have changed. Unseen: this process has not finished a reconcile over the object yet.
	Child, Related, Index, Unseen bool
	// Named: this handler runs in any case. Resync: the resync period has passed.
	Named, Resync bool
	// Fires: the handler's timer is due. Granted: the handler has got a right that it lacked.
	Fires, Granted bool
	// Again: the handler asked to run again, and the time has come.
	Again bool
	// Chosen: the handler's filters on labels and annotations hold.
	Chosen bool
	// Gone: the cache does not show the object any longer.
	Gone bool
	// Released: the object is being deleted, and only finalizers of others hold it.
	Released bool
}

// Decide returns the cause for which a handler has to run, empty for none, and its entry with all triggers recorded.
func Decide(h *dsl.Handler, e progress.Entry, s Situation) (progress.Entry, dsl.Cause) {
	e = s.enter(h, e)
	if e.Try.Ended && s.Deletion == "" {
		return e, "" // the namespace is terminating, and rejects new objects
	}
	c := e.Due(h, s.Facts)
	t := s.triggered(h)
	switch {
	case c == "" && t != "":
		return e.WakeFor(t), t
	case t.FromOthers(), c == dsl.Delete && s.concerns(h), s.Again:
		e.Try = e.Try.TryEarly(s.At) // the thing that it waits for may exist now
	case c == "" && h.Level() && !s.Chosen:
		e = e.FilteredOut()
	}
	if c == dsl.Resume && s.Gone {
		c = ""
	}
	if c == dsl.Delete && s.Released && !h.NoFinalizer {
		c = "" // without the finalizer, the handler has nothing to do before the deletion
	}
	return e, c
}

// enter returns a handler's entry as of now. Triggers end its wait, and facts of a deletion are dropped if the object is
// not being deleted.
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
		e.Try.Step, e.Try.Parts = 0, e.Try.Parts.Rerun() // results of the first step may be out of date
	}
	return e
}

// concerns reports whether something beside the object has changed that a handler reads. In a deletion this is no cause,
// but it ends the handler's wait.
func (s Situation) concerns(h *dsl.Handler) bool {
	return s.Child && h.Known.Reads.Children || s.Related && h.Known.Reads.Related || s.Index
}

// triggered returns a handler's cause from events beside the object, empty for none.
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

// askFor returns a cause of the handler with which its filters can be evaluated.
func askFor(h *dsl.Handler) dsl.Cause {
	for _, c := range []dsl.Cause{dsl.Update, dsl.Create, dsl.Delete} {
		if h.On(c) {
			return c
		}
	}
	return dsl.Resume
}

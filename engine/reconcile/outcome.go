// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"maps"
	"reflect"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// outcomeReaders returns the readers whose outcomes others read, and the readers that read outcomes.
func outcomeReaders(readers []progress.Handler) (outcomeReaders, hears []progress.Handler) {
	read := map[string]bool{}
	for _, r := range readers {
		for _, p := range r.Known.Reads.Outcomes {
			if len(p) > 0 {
				read[p[0]] = true
			}
		}
		if len(r.Known.Reads.Outcomes) > 0 {
			hears = append(hears, r)
		}
	}
	for _, r := range readers {
		if read[r.ID] {
			outcomeReaders = append(outcomeReaders, r)
		}
	}
	return outcomeReaders, hears
}

// recall adds the handlers' outcomes to the state in which a reconcile begins: from the last reconcile, or else from the
// progress. It is for resources in which handlers read outcomes.
func (p *run) recall(st State) State {
	all := make(dsl.Outcomes, len(p.Rules.OutcomeSources))
	for _, r := range p.Rules.OutcomeSources {
		e := p.progress.Entry(r)
		all[r.ID] = e.Outcome(e.Try)
		if last, known := p.memory.Outcomes[r.ID]; known {
			all[r.ID] = last
		}
	}
	st.Look, p.outcomesRead = st.Look.WithOutcomes(all), map[string][]any{}
	return st
}

// noteOutcomesRead records the outcomes that a handler sees when it is decided.
func (p *run) noteOutcomesRead(st State, r progress.Handler) {
	if p.outcomesRead != nil && len(r.Known.Reads.Outcomes) > 0 {
		p.outcomesRead[r.ID] = st.outcomesRead(r)
	}
}

// outcomesRead returns the present outcomes that a handler reads.
func (st State) outcomesRead(r progress.Handler) (out []any) {
	for _, path := range r.Known.Reads.Outcomes {
		if len(path) > 0 {
			out = append(out, st.Look.Outcomes().At(path))
		}
	}
	return out
}

// needsOutcomes reports whether a handler must see changes of the outcomes that it reads: it looks at them, or its
// filters, which may read them, have excluded it.
func (st State) needsOutcomes(r progress.Handler) bool {
	w, is := st.whyOf(r)
	return len(r.View.Outcomes) > 0 || is && (w.Reason == why.WhenFalse || w.Reason == why.WhenFails)
}

// publishOutcome shows a handler's outcome to later handlers, if others read it.
func (p *run) publishOutcome(st State, r progress.Handler) State {
	before := st.Look.Outcomes()
	last, read := before[r.ID]
	if !read {
		return st
	}
	now := p.outcomeOf(st, r, last)
	if now == last {
		return st
	}
	all := maps.Clone(before)
	all[r.ID] = now
	st.Look = st.Look.WithOutcomes(all)
	return st
}

// outcomeOf returns a handler's present outcome. Last is its outcome before the reconcile.
func (p *run) outcomeOf(st State, r progress.Handler, last dsl.Outcome) dsl.Outcome {
	j := st.Attempts.Of(r)
	if w, is := st.whyOf(r); is && (j == nil || !j.Ran) {
		switch w.Reason {
		case why.WhenFalse, why.NotMatched:
			return dsl.Outcome{State: dsl.OutcomeFiltered}
		case why.WhenFails:
			return progress.Unasked(w.Detail)
		case why.Blocked:
			return dsl.Outcome{State: dsl.OutcomeWaiting, Message: "waiting for handler " + w.Detail}
		}
	}
	e := p.progress.Entry(r)
	switch {
	case j != nil:
		return e.Outcome(j.Record)
	case last.State == dsl.OutcomeFiltered:
		return last // nothing was due for it
	}
	return e.Outcome(e.Try)
}

// whyOf returns why a handler did not run in the reconcile so far.
func (st State) whyOf(r progress.Handler) (Why, bool) {
	i := slices.IndexFunc(st.Why, func(w Why) bool { return w.Handler == r.ID })
	if i < 0 {
		return Why{}, false
	}
	return st.Why[i], true
}

// isOutcomeMissing reports whether a handler did not run in the reconcile because it reads an outcome that is not known
// yet.
func (st State) isOutcomeMissing(r progress.Handler) bool {
	if len(r.Known.Reads.Outcomes) == 0 {
		return false // most handlers read none
	}
	w, is := st.whyOf(r)
	return is && w.Reason == why.OutcomeMissing
}

// hasMissingOutcome reports whether a handler waits for an outcome that is missing.
func (st State) hasMissingOutcome() bool {
	return slices.ContainsFunc(st.Why, func(w Why) bool { return w.Reason == why.OutcomeMissing })
}

// through reports whether all handlers with something to do are through.
func (st State) through() bool { return st.Attempts.Through() && !st.hasMissingOutcome() }

// missingOutcome returns a later handler whose outcome this one reads, and which is unknown: after a restart, outcomes
// that are not stored are unknown until the handler has been decided. It is empty if all are known.
func (p *run) missingOutcome(st State, r progress.Handler) string {
	if p.Deletion != "" {
		return ""
	}
	for _, other := range p.Rules.OutcomeSources {
		if _, known := p.memory.Outcomes[other.ID]; known || other.Place <= r.Place || !r.ReadsOutcome(other.ID) {
			continue
		}
		if st.Look.Outcomes()[other.ID].State == dsl.OutcomeNever {
			return other.ID
		}
	}
	return ""
}

// outcomes remembers the handlers' outcomes. The next reconcile is due at once if a handler has missed the outcome of a
// later one, or an outcome that the write has changed.
func (p *run) outcomes(st State) State {
	if p.Deletion != "" {
		return st
	}
	for _, r := range p.Rules.OutcomeSources {
		st = p.publishOutcome(st, r)
	}
	known := maps.Clone(st.Look.Outcomes())
	for _, r := range p.Rules.OutcomeSources {
		j := st.Attempts.Of(r)
		hadNoTurn := st.isOutcomeMissing(r) || j != nil && !j.Ran
		if hadNoTurn && known[r.ID].State == dsl.OutcomeNever {
			delete(known, r.ID)
		}
	}
	p.memory.Outcomes = known
	if st.hasMissingOutcome() {
		st.Due = st.Due.AtOnce()
	}
	for _, r := range p.Rules.OutcomeReaders {
		if heard, had := p.outcomesRead[r.ID]; had && st.needsOutcomes(r) && !reflect.DeepEqual(heard, st.outcomesRead(r)) {
			st.Due = st.Due.AtOnce()
		}
	}
	return st
}

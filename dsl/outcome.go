// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"
	"strings"
	"time"
)

// OutcomeState says in a word what came of a handler; see [Outcome].
type OutcomeState string

// The states of outcomes.
const (
	// OutcomeDone: the handler's last run succeeded.
	OutcomeDone OutcomeState = "done"
	// OutcomeWaiting: the handler waits for other objects, or for a handler that it comes after.
	OutcomeWaiting OutcomeState = "waiting"
	// OutcomeFailed: the handler's last run failed, or its filter did. Outcome.NextTry says whether it is tried again.
	OutcomeFailed OutcomeState = "failed"
	// OutcomeFiltered: the handler was to run, and its filters did not match.
	OutcomeFiltered OutcomeState = "filtered"
	// OutcomeNever: the handler has not run for the object.
	OutcomeNever OutcomeState = "never"
)

// OutcomeStates returns all states.
func OutcomeStates() []string {
	return []string{string(OutcomeDone), string(OutcomeWaiting), string(OutcomeFailed), string(OutcomeFiltered), string(OutcomeNever)}
}

// Outcome is what came of a handler for an object, as other handlers of the object can read it.
type Outcome struct {
	State OutcomeState
	// Message is the error of the last run, or what the handler waits for, in at most 200 bytes. It is empty in other
	// states. Values of Secrets are left out of it as in conditions.
	Message string
	// Attempts counts the runs that have failed since the handler succeeded last.
	Attempts int
	// NextTry is when a failed handler is tried again, in whole seconds. It is zero if it is not tried again by itself.
	NextTry time.Time
}

// Outcomes are what came of handlers, by their ids.
type Outcomes map[string]Outcome

// Fields returns the outcome as expressions know it: state, message, attempts, and nextTry if it has a time.
func (o Outcome) Fields() map[string]any {
	out := map[string]any{"state": string(o.State), "message": o.Message, "attempts": int64(o.Attempts)}
	if !o.NextTry.IsZero() {
		out["nextTry"] = o.NextTry
	}
	return out
}

// OutcomeFields returns the names of all fields of an outcome.
func OutcomeFields() []string { return []string{"attempts", "message", "nextTry", "state"} }

// At returns the part of the outcomes at a path, as in apply.state; nil if there is none. A time is text.
func (o Outcomes) At(p Path) any {
	outcome, found := o[p[0]]
	if !found {
		return nil
	}
	fields := outcome.Fields()
	if at, is := fields["nextTry"].(time.Time); is {
		fields["nextTry"] = at.Format(time.RFC3339)
	}
	if len(p) > 1 {
		return fields[p[1]]
	}
	return fields
}

// hasOutcome reports whether expressions of other handlers can read what came of the handler.
func (h *Handler) hasOutcome() bool { return !h.ResourceWide && h.Daemon == nil }

// ReadsOutcome reports whether the handler is known to read what came of another one.
func (h *Handler) ReadsOutcome(id string) bool {
	return slices.ContainsFunc(h.Known.Reads.Outcomes, func(p Path) bool { return len(p) > 0 && p[0] == id })
}

// outcomeLasts reports whether what came of the handler is known again after a restart: it is stored on the object,
// or the handler runs again.
func (h *Handler) outcomeLasts() bool { return h.Level() || h.Stores() || h.On(Resume) || h.On(Delete) }

// outcomeOutlasts reports whether what came of the handler is also known again after a restart that meets the object in its
// deletion, when most handlers do not run any more.
func (h *Handler) outcomeOutlasts() bool { return h.Stores() || h.On(Delete) }

// checkOutcomes reports outcomes that handlers cannot read: of all handlers at once, their own, those of handlers that read
// theirs, and those that are not known after a restart. That a handler exists is checked with the expression.
func (r *Resource) checkOutcomes(c check) {
	byID, next := map[string]*Handler{}, map[*Handler][]*Handler{}
	for _, h := range r.handlers {
		if h.hasOutcome() {
			byID[h.ID] = h
		}
	}
	for _, h := range r.handlers {
		of := check{Place{Resource: r, Handler: h}, c.found}
		for _, p := range distinct(h.Known.Reads.Outcomes) {
			other := byID[p[0]]
			switch {
			case other == nil || slices.Contains(next[h], other):
			case other != h && !other.outcomeLasts():
				of.fault("", "it reads handlers.%s, which is not known after a restart (want create, update or reconcile among the causes of handler %[1]s)", other.ID)
			case other != h && h.On(Delete) && !other.outcomeOutlasts():
				of.fault("", "it runs for deletions and reads handlers.%s, which is not known after a restart in a deletion (want causes: [create, update] of handler %[1]s, or no delete here)", other.ID)
			default:
				next[h] = append(next[h], other)
			}
		}
		if slices.ContainsFunc(h.Known.Reads.Outcomes, func(p Path) bool { return len(p) == 0 }) {
			of.fault("", "its expressions read handlers as a whole (want one by its id, as in handlers.apply or handlers['my-id'])")
		}
	}
	r.checkOutcomeRings(c, next)
}

// checkOutcomeRings reports handlers that read their own outcomes, or each other's. Next are the handlers whose outcomes one reads.
func (r *Resource) checkOutcomeRings(c check, next map[*Handler][]*Handler) {
	listed := map[*Handler]bool{}
	for _, h := range r.handlers {
		if listed[h] || len(next[h]) == 0 {
			continue
		}
		var ids []string
		for _, one := range back(h, next) {
			listed[one] = true
			ids = append(ids, one.ID)
		}
		of := check{Place{Resource: r, Handler: h}, c.found}
		switch {
		case len(ids) == 1:
			of.fault("", "it reads its own outcome (handlers.%s)", h.ID)
		case len(ids) > 1:
			of.fault("", "handlers %s read each other's outcomes and would not come to rest (want one direction)", strings.Join(ids, ", "))
		}
	}
}

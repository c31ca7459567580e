// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Reason is why a handler ran in a reconcile, or why not.
type Reason string

// The reasons for which a handler of a reconcile runs, or does not. A new one is a row here, and a Why in the State of the step that finds it
// out: decide, for what is due and seen, or postponed, for what waits.
const (
	// HasRun: the handler ran for Cause.
	HasRun Reason = "Ran"
	// NothingDue: what the handler looks at is as the handler left it, and nothing came up for which it has to run.
	NothingDue Reason = "NothingDue"
	// NotMatched: a label or an annotation does not match. Detail names it, with its value.
	NotMatched Reason = "NotMatched"
	// WhenFalse: the handler's when is false.
	WhenFalse Reason = "WhenFalse"
	// WhenFails: the handler's filter failed. Detail is the error.
	WhenFails Reason = "WhenFails"
	// TimeFails: the time at which the handler runs could not be computed. Detail is the error.
	TimeFails Reason = "TimeFails"
	// BackOff: the handler failed, or waits, and is tried again later. Detail is the time.
	BackOff Reason = "BackOff"
	// Blocked: the handler comes after another one, which is not through. Detail names that.
	Blocked Reason = "Blocked"
	// DeadlineOver: the time that all attempts have together is over.
	DeadlineOver Reason = "DeadlineOver"
	// NotChosen: the resource's lifecycle chose other handlers.
	NotChosen Reason = "NotChosen"
	// Unheard: the handler reads what came of one declared after it, which this process does not know yet. Detail names that.
	OutcomeMissing Reason = "Unheard"
	// DaemonsFirst: the object is being deleted, and its daemons have not ended.
	DaemonsFirst Reason = "DaemonsFirst"
	// NotYet: the handler has nothing else to do, and its time has not come.
	NotYet Reason = "NotYet"
	// NoTime: the handler runs at a time from its object, which gives none. Answers alone say this.
	NoTime Reason = "NoTime"
	// ToRun: the handler has to run, and did not yet. Answers alone say this and the one before.
	ToRun Reason = "ToRun"
)

// The reasons for which a reconcile over an object does not begin, so no handler of it runs. A new one is a row here, and a call of
// Site.idle in Site.Run or runLiving, which find it out before the reconcile is opened.
const (
	// CacheBehind: the cache does not show this operator's own writes yet. Their events wake the key.
	CacheBehind Reason = "CacheBehind"
	// BreakerOpen: the object's reconciles wrote again and again. The next one waits.
	BreakerOpen Reason = "BreakerOpen"
	// MemoryShort: other reconciles hold the memory that the reconcile takes.
	MemoryShort Reason = "MemoryShort"
	// Paused: the object, its namespace or the operator is paused. Detail is the reason.
	Paused Reason = "Paused"
	// ScopeLeft: the object's namespace has left the operator's scope, and so is the object about to.
	ScopeLeft Reason = "ScopeLeft"
)

// Why says of one handler why it ran in a reconcile, or why not.
type Why struct {
	Handler string
	// Cause is what it ran for, or would run for; empty where nothing is due.
	Cause  dsl.Cause
	Reason Reason
	// Detail has the facts, empty where the reason says all.
	Detail string
}

// String says it for the log.
func (w Why) String() string {
	if w.Detail == "" {
		return string(w.Reason)
	}
	return fmt.Sprintf("%s: %s", w.Reason, w.Detail)
}

// Reasons says of each of a resource's handlers, in their order, why it ran in the reconcile, or why not. The reason is empty where the
// reconcile broke off before it came to the handler.
func (r Result) Reasons(readers []progress.Handler) []Why {
	rest := NothingDue
	if r.Err != nil || r.Vanished {
		rest = ""
	}
	found := make(map[string]Why, len(r.Attempts)+len(r.Why))
	for _, a := range r.Attempts {
		found[a.Handler.ID] = Why{Handler: a.Handler.ID, Cause: a.Cause, Reason: HasRun}
	}
	for _, w := range r.Why {
		found[w.Handler] = w
	}
	out := make([]Why, 0, len(readers))
	for _, reader := range readers {
		w, is := found[reader.ID]
		if !is {
			w = Why{Handler: reader.ID, Reason: rest}
		}
		out = append(out, w)
	}
	return out
}

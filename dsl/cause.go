// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"
	"strings"
)

// Cause says why a handler runs. The table in this file has the properties of each cause, and all code reads them
// there. Only the code that triggers a cause knows it by name.
type Cause string

// The causes, each for one handler and one object. A handler's view is what it looks at: by default the essence,
// which is everything but the status, bookkeeping metadata and the engine's own annotations; otherwise
// Handler.Fields.
const (
	// Create: the operator has not handled the object yet.
	Create Cause = "create"
	// Update: the handler's view differs from what the handler handled last. It does not matter who changed it: a
	// person, another operator or another handler.
	Update Cause = "update"
	// Delete: the object has a deletion timestamp, or is gone.
	Delete Cause = "delete"
	// Resume: the object was handled before, and this process sees it for the first time.
	Resume Cause = "resume"
	// Resync: the resource's resync period has passed for the object.
	Resync Cause = "resync"
	// Child: an object that this object owns has changed.
	Child Cause = "child"
	// RelatedChange: an object that one of the resource's relations selects has changed.
	RelatedChange Cause = "related"
	// IndexChange: an index has other values under a key that the handler, or its filter, has read.
	IndexChange Cause = "index"
	// Timer: the handler's time has come.
	Timer Cause = "timer"
	// Event: the watch sent an event for the object, whatever changed in it: also its status, and also by this
	// operator's own writes. Events that come while the object is being handled count as one. The operator does not
	// store them, so a handler with this cause has no other. Request.Event is the event's type.
	Event Cause = "event"
	// Again: the handler asked for another run; see [Request.RunAgain]. It cannot be in a list of causes.
	Again Cause = "again"
	// Reconcile is short for [ReconcileCauses] in a list of causes.
	Reconcile Cause = "reconcile"
)

// origin is where a cause comes from. It decides whether a cause that was not handled still holds later.
type origin int

const (
	// fromObject: the cause follows from the object and its progress, so it also holds in the next process.
	fromObject origin = iota + 1
	// fromStart: a process sees the object for the first time.
	fromStart
	// fromOthers: other objects changed.
	fromOthers
	// fromClock: a time has come.
	fromClock
	// fromWatch: the watch sent an event for the object.
	fromWatch
)

// causeRow has the properties of a cause.
type causeRow struct {
	cause  Cause
	origin origin
	// reconcile: Reconcile includes the cause.
	reconcile bool
	// unlisted: handlers cannot declare the cause, and no list has it.
	unlisted bool
	// alone: a handler with the cause has no other cause, and names no fields.
	alone bool
	// requires is a declaration that the cause needs; nil when it needs none.
	requires *requirement
	// reads reports whether a handler reads something whose change is this cause; nil when the handler reads only
	// the object.
	reads func(KnownReads) bool
	// watches names for people what triggers the cause; empty for the object's view.
	watches string
	// doc ends the sentence "The handler runs when".
	doc string
}

// causeTable has the causes in the order in which they take precedence when several apply.
var causeTable = []causeRow{
	{cause: Delete, origin: fromObject, doc: "the object is being deleted, or was seen to be gone"},
	{cause: Create, origin: fromObject, reconcile: true, doc: "the operator has not handled the object"},
	{cause: Update, origin: fromObject, reconcile: true, doc: "what it looks at differs from what it handled last, whoever changed it"},
	{cause: Resume, origin: fromStart, reconcile: true, doc: "a new process sees an object for the first time that was handled before"},
	{cause: Child, origin: fromOthers, reconcile: true, requires: &needsOwned, watches: "children", doc: "an object that the object owns changed",
		reads: func(r KnownReads) bool { return r.Children }},
	{cause: RelatedChange, origin: fromOthers, reconcile: true, requires: &needsRelations, watches: "related objects", doc: "an object that a relation selects changed",
		reads: func(r KnownReads) bool { return r.Related }},
	{cause: IndexChange, origin: fromOthers, reconcile: true, requires: &needsIndexes, watches: "indexes", doc: "what it has read of an index changed",
		reads: func(r KnownReads) bool { return len(r.Indexes) > 0 }},
	{cause: Timer, origin: fromClock, requires: &needsTiming, watches: "the clock", doc: "its time has come"},
	{cause: Again, origin: fromClock, unlisted: true, doc: "it asked to be run again"},
	{cause: Resync, origin: fromClock, reconcile: true, requires: &needsResync, doc: "the resource's resync period has passed for the object"},
	{cause: Event, origin: fromWatch, alone: true, watches: "every event of the watch", doc: "the watch reported the object, whatever changed in it"},
}

// requirement is a declaration that a cause needs.
type requirement struct {
	// field is the field of a resource that declares it; empty for a field of the handler.
	field string
	// fault is the message for a missing declaration.
	fault string
	met   func(*Resource, *Handler) bool
}

var (
	needsTiming = requirement{
		fault: "the handler has no timer (want at, every, pause, cron or idle)",
		met:   func(_ *Resource, h *Handler) bool { return h.Timing != nil },
	}
	needsResync = requirement{
		field: "resync", fault: "the resource has no resync period",
		met: func(r *Resource, _ *Handler) bool { return r.Resync != 0 },
	}
	needsOwned = requirement{
		field: "owns", fault: "the resource owns nothing, so no child changes",
		met: func(r *Resource, _ *Handler) bool { return len(r.owns) > 0 },
	}
	needsIndexes = requirement{
		field: "indexes", fault: "the operator has no indexes",
		met: func(r *Resource, _ *Handler) bool { return r.op != nil && len(r.op.indexes) > 0 },
	}
	needsRelations = requirement{
		field: "related", fault: "the resource has no related objects",
		met: func(r *Resource, _ *Handler) bool { return len(r.relations) > 0 },
	}
)

// row returns the properties of a cause; an unknown cause has none.
func (c Cause) row() *causeRow {
	for i := range causeTable {
		if causeTable[i].cause == c {
			return &causeTable[i]
		}
	}
	return &causeRow{}
}

// Lasting reports whether the cause follows from stored state, so that it also holds in the next process.
func (c Cause) Lasting() bool { return c.row().origin == fromObject }

// Transient reports whether the cause is lost when the handler's filters do not match at that moment.
func (c Cause) Transient() bool { return c.row().origin > fromStart }

// FromOthers reports whether the cause is a change of other objects.
func (c Cause) FromOthers() bool { return c.row().origin == fromOthers }

// FromClock reports whether the cause is that a time has come.
func (c Cause) FromClock() bool { return c.row().origin == fromClock }

// Met reports whether the resource and the handler declare what the cause needs.
func (c Cause) Met(r *Resource, h *Handler) bool { return c.unmet(r, h) == nil }

// unmet returns the declaration that the resource or the handler lacks for the cause, or nil.
func (c Cause) unmet(r *Resource, h *Handler) *requirement {
	if need := c.row().requires; need != nil && !need.met(r, h) {
		return need
	}
	return nil
}

// Watches names for people what triggers the cause; empty for the object's view.
func (c Cause) Watches() string { return c.row().watches }

// Doc returns the end of the sentence "The handler runs when".
func (c Cause) Doc() string { return c.row().doc }

// Causes returns all causes in the order in which they take precedence when several apply.
func Causes() []Cause { return causesWith(func(causeRow) bool { return true }) }

// ReconcileCauses returns the causes that Reconcile is short for. A level-triggered handler needs no others.
func ReconcileCauses() []Cause { return causesWith(func(row causeRow) bool { return row.reconcile }) }

func causesWith(holds func(causeRow) bool) (out []Cause) {
	for _, row := range causeTable {
		if !row.unlisted && holds(row) {
			out = append(out, row.cause)
		}
	}
	return out
}

// expandCauses replaces Reconcile by its causes and drops repetitions. The result is in the order of [Causes].
// Unknown causes are left out; [Operator.Validate] reports them.
func expandCauses(causes []Cause) []Cause {
	all := slices.Contains(causes, Reconcile)
	return causesWith(func(row causeRow) bool { return slices.Contains(causes, row.cause) || all && row.reconcile })
}

// Choices returns the words of a list of causes, sorted.
func (Cause) Choices() (what string, words []string) {
	words = []string{string(Reconcile)}
	for _, c := range Causes() {
		words = append(words, string(c))
	}
	slices.Sort(words)
	return "cause", words
}

// FormDoc describes all causes.
func (Cause) FormDoc() string {
	var all, short []string
	for _, c := range Causes() {
		all = append(all, string(c)+": "+c.Doc()+".")
	}
	for _, c := range ReconcileCauses() {
		short = append(short, string(c))
	}
	return strings.Join(all, " ") + " " + string(Reconcile) + " is short for " + strings.Join(short, ", ") + "."
}

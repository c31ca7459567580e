// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"
	"strings"
)

// Cause says why a handler runs. What there is to know of each cause stands in the table of this file, which
// everybody reads; beyond it, only what triggers a cause knows it by name.
type Cause string

// The causes, each for one handler and one object. What a handler looks at is its view: the essence,
// which is everything but the status, bookkeeping metadata and the engine's own annotations, or
// Handler.Fields.
const (
	// Create: the operator has not handled the object.
	Create Cause = "create"
	// Update: the handler's view differs from what it handled last, whoever changed it: a person,
	// another operator, another handler.
	Update Cause = "update"
	// Delete: the object has a deletion timestamp, or was seen to be gone.
	Delete Cause = "delete"
	// Resume: this process sees an object for the first time that was handled before.
	Resume Cause = "resume"
	// Resync: the resource's resync period has passed for the object.
	Resync Cause = "resync"
	// Child: an object that this object owns has changed.
	Child Cause = "child"
	// RelatedChange: an object that one of the resource's relations selects has changed.
	RelatedChange Cause = "related"
	// IndexChange: what an index has under a key that the handler, or its filter, has read has changed.
	IndexChange Cause = "index"
	// Timer: the handler's time has come.
	Timer Cause = "timer"
	// Event: the watch told of the object, whatever changed in it, its status and this operator's own writes
	// included. Events that come while the object is being handled are one. Nothing is remembered of it, so
	// a handler has this cause alone; Request.Event says what was told.
	Event Cause = "event"
	// Again: the handler asked for it; see [Request.RunAgain]. No list of causes has it.
	Again Cause = "again"
	// Reconcile is, in a list of causes, short for [ReconcileCauses].
	Reconcile Cause = "reconcile"
)

// origin is where a cause comes from. It decides what is left of one that a handler has not handled.
type origin int

const (
	// fromObject: the object and its book tell it, so it is there in the next process, too.
	fromObject origin = iota + 1
	// fromStart: a process begins with the object.
	fromStart
	// fromOthers: other objects changed.
	fromOthers
	// fromClock: a time has come.
	fromClock
	// fromWatch: the watch told of the object.
	fromWatch
)

// causeRow is all there is to know of a cause.
type causeRow struct {
	cause  Cause
	origin origin
	// reconcile: Reconcile stands for it, among others.
	reconcile bool
	// unlisted: no handler declares it, and no list has it.
	unlisted bool
	// alone: a handler that has it has no other, and names no field.
	alone bool
	// requires is what must be declared for it to come about; nil for nothing.
	requires *requirement
	// reads tells what a handler reads whose change is this cause; nil where it is nothing but the object.
	reads func(Reads) bool
	// watches names for people what runs a handler that has it, where that is not the object's view.
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
		reads: func(r Reads) bool { return r.Children }},
	{cause: RelatedChange, origin: fromOthers, reconcile: true, requires: &needsRelations, watches: "related objects", doc: "an object that a relation selects changed",
		reads: func(r Reads) bool { return r.Related }},
	{cause: IndexChange, origin: fromOthers, reconcile: true, requires: &needsIndexes, watches: "indexes", doc: "what it has read of an index changed",
		reads: func(r Reads) bool { return len(r.Indexes) > 0 }},
	{cause: Timer, origin: fromClock, requires: &needsTiming, watches: "the clock", doc: "its time has come"},
	{cause: Again, origin: fromClock, unlisted: true, doc: "it asked to be run again"},
	{cause: Resync, origin: fromClock, reconcile: true, requires: &needsResync, doc: "the resource's resync period has passed for the object"},
	{cause: Event, origin: fromWatch, alone: true, watches: "every event of the watch", doc: "the watch told of the object, whatever changed in it"},
}

// requirement is what must be declared for a cause to come about.
type requirement struct {
	// field is the field of a resource that declares it, empty where it is the handler's.
	field string
	// fault says that it is not declared.
	fault string
	met   func(*Resource, *Handler) bool
}

var (
	needsTiming = requirement{
		fault: "the handler has no timer (want every, pause, cron or idle)",
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

// row returns what there is to know of a cause, nothing of one that is unknown.
func (c Cause) row() *causeRow {
	for i := range causeTable {
		if causeTable[i].cause == c {
			return &causeTable[i]
		}
	}
	return &causeRow{}
}

// Lasting reports whether the cause follows from what is stored, so that it is there in the next process, too.
func (c Cause) Lasting() bool { return c.row().origin == fromObject }

// Transient reports whether nothing is left of the cause when a handler that it would run does not see the object.
func (c Cause) Transient() bool { return c.row().origin > fromStart }

// FromOthers reports whether the cause is a change of other objects.
func (c Cause) FromOthers() bool { return c.row().origin == fromOthers }

// FromClock reports whether the cause is that a time has come.
func (c Cause) FromClock() bool { return c.row().origin == fromClock }

// Met reports whether what must be declared for the cause to come about is.
func (c Cause) Met(r *Resource, h *Handler) bool { return c.unmet(r, h) == nil }

// unmet returns what the resource or the handler lacks for the cause to come about, nil when it can.
func (c Cause) unmet(r *Resource, h *Handler) *requirement {
	if need := c.row().requires; need != nil && !need.met(r, h) {
		return need
	}
	return nil
}

// Watches names for people what runs a handler that has the cause, empty where that is the object's view.
func (c Cause) Watches() string { return c.row().watches }

// Doc says when a handler runs for the cause: the end of a sentence.
func (c Cause) Doc() string { return c.row().doc }

// Causes returns all causes in the order in which they take precedence when several apply.
func Causes() []Cause { return causesWith(func(causeRow) bool { return true }) }

// ReconcileCauses returns what Reconcile stands for. A level-triggered handler needs nothing else.
func ReconcileCauses() []Cause { return causesWith(func(row causeRow) bool { return row.reconcile }) }

func causesWith(holds func(causeRow) bool) (out []Cause) {
	for _, row := range causeTable {
		if !row.unlisted && holds(row) {
			out = append(out, row.cause)
		}
	}
	return out
}

// expandCauses replaces Reconcile by what it stands for and drops repetitions. The result is in
// the order of [Causes]. Unknown causes are left out; [Operator.Validate] reports them.
func expandCauses(causes []Cause) []Cause {
	all := slices.Contains(causes, Reconcile)
	return causesWith(func(row causeRow) bool { return slices.Contains(causes, row.cause) || all && row.reconcile })
}

// Choices returns the words of a list of causes, sorted, for those who read it.
func (Cause) Choices() (what string, words []string) {
	words = []string{string(Reconcile)}
	for _, c := range Causes() {
		words = append(words, string(c))
	}
	slices.Sort(words)
	return "cause", words
}

// FormDoc tells of all of them.
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

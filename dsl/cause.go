// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"
	"strings"
)

// Cause says why a handler runs.
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
	// Timer: the handler's time has come.
	Timer Cause = "timer"
	// Event: the watch told of the object, whatever changed in it, its status and this operator's own writes
	// included. Events that come while the object is being handled are one. Nothing is remembered of it, so
	// a handler has this cause alone; Request.Event says what was told.
	Event Cause = "event"
)

// Reconcile is, in a list of causes, short for [ReconcileCauses].
const Reconcile Cause = "reconcile"

// Causes returns all causes in the order in which they take precedence when several apply.
func Causes() []Cause {
	return []Cause{Delete, Create, Update, Resume, Child, RelatedChange, Timer, Resync, Event}
}

// ReconcileCauses returns what Reconcile stands for: every cause but Delete, Timer and Event. A level-triggered
// handler needs nothing else.
func ReconcileCauses() []Cause {
	return []Cause{Create, Update, Resume, Child, RelatedChange, Resync}
}

// ExpandCauses replaces Reconcile by what it stands for and drops repetitions. The result is in
// the order of [Causes]. Unknown causes are left out; [Operator.Validate] reports them.
func ExpandCauses(causes []Cause) []Cause {
	var out []Cause
	for _, c := range Causes() {
		named := slices.Contains(causes, c)
		implied := slices.Contains(causes, Reconcile) && slices.Contains(ReconcileCauses(), c)
		if named || implied {
			out = append(out, c)
		}
	}
	return out
}

// CauseNames returns the words a list of causes may hold, sorted, for messages.
func CauseNames() []string {
	names := []string{string(Reconcile)}
	for _, c := range Causes() {
		names = append(names, string(c))
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

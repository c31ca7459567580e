// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import "time"

// Machine is a finite state machine over each object of a resource. Its book is kept in the object's status, where people
// and programs can read it: the state, since when, and the last transitions; so it goes on where it was after a restart, in
// another process, and with another leader.
//
// The machine is a handler: it runs whenever there may be something to do (see [Reconcile]), and when a time of its own has
// come. A run does, in this order:
//
//   - An object without a book is in the initial state. So is one whose book is another object's, which was copied with it.
//   - What a person asks for with the annotation goto is done where such a transition is declared, else refused with an Event.
//     Until the annotation is gone, there are no other transitions.
//   - The state's Enter runs, until it has succeeded once; that it has is written down. Then During runs.
//   - The first of the state's transitions whose When holds is taken; without one, that of a time-out that is over. A
//     transition is written down before anything is done for it. States without Enter are gone through in one run.
//
// A crash between an action and its being written down repeats the action: each runs at least once.
type Machine struct {
	// Name is where the book lies, status.<Name>, and the id of the machine's handler. Empty for the one machine whose
	// book lies in status itself; its handler's id is "machine". One machine of a resource may have no name.
	Name string
	// States are the states, in an order for people. The first one is the initial one, unless Initial names another.
	States  []State
	Initial string
	// Deletion are the states of an object that is being deleted, in the same book: whatever its state was, it goes to the
	// first of these, or to InitialDeletion. The object is held by the operator's finalizer until a terminal one of them is
	// reached and its actions are done; one that is Failed, too, holds it for good, unless [Release] is set. Without any,
	// the machine does nothing for an object that is being deleted. The names of all states of a machine differ.
	Deletion        []State
	InitialDeletion string
	// AllowCycles: a state may be come back to. Without it a way back is a fault of the machine; those that only a person
	// takes, with Manual, and a way from a terminal state are ways back, too.
	AllowCycles bool
	// Migrate says where objects go that are in a state which the machine does not have any more: from old names to new
	// ones. An object in a state that is neither declared nor named here is held: nothing is done for it, and Ready
	// says so.
	Migrate map[string]string
	// History is how many transitions are kept in the object's status. Zero means DefaultHistory, less than zero none.
	History int
}

// DefaultHistory is how many transitions an object's status keeps.
const DefaultHistory = 10

// State is one state of a [Machine].
type State struct {
	// Name is one CamelCase word.
	Name string
	// Enter is what is done once after the state was entered, in one attempt or in several; During each time that the
	// machine runs while an object is in the state, so that what somebody else changes is put right. Either may be nil. What
	// they make are children that stay when the state is left.
	Enter, During Func
	// Action says for people what both are, as in "enter: apply". Empty for Go code.
	Action string
	// Transitions are the ways out, in order: the first whose When holds is taken. None is tried before Enter has succeeded.
	Transitions []Transition
	// Stay, when set, is how long an object may be in the state. It counts from the transition to it, also while Enter
	// fails, and through restarts.
	Stay *Stay
	// Retries, when set, is how often Enter and During may fail in the state, together. Absent: until they succeed.
	Retries *Budget
	// Terminal: nothing more happens, but for During and for what a person asks for. A terminal state that is Failed is a bad end.
	Terminal, Failed bool
	// Ready says whether an object in the state is. Nil means: where the state is terminal and not Failed.
	Ready *bool
	// Condition is the type of a condition that is True while an object is in the state, or in another one that
	// declares it; in all others it is False, and its reason is the state. Empty for none.
	Condition string
	// Doc says for people what the state is, in a sentence. It is the message of the conditions.
	Doc string
}

// Transition is a way from a state to another.
type Transition struct {
	// To is the state that it leads to.
	To string
	// When must hold for it to be taken. Nil means as soon as Enter has succeeded.
	When Predicate
	// Manual: it is taken only when a person asks for it, with the annotation goto, and has no When.
	Manual bool
	// Why says for people why it is taken; for one in YAML by default the expression. It is part of the history.
	Why string
}

// Stay is how long an object may be in a state, and to which it goes then.
type Stay struct {
	AtMost time.Duration
	Then   string
}

// Budget is how often the actions of a state may fail, and to which state an object goes when they fail once more. AtMost 0
// means at the first failure.
type Budget struct {
	AtMost int
	Then   string
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"iter"
	"slices"
	"strings"
	"time"
)

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
	// they make are children that stay when the state is left. During sees what Enter wants of the object, and transitions see
	// what both want; steps of one of them do not see what those before them want.
	Enter, During Func
	// Action says for people what both are, as in "enter: apply". Empty for Go code.
	Action string
	// Transitions are the ways out, in order: the first whose When holds is taken. None is tried before Enter has succeeded.
	Transitions []Transition
	// Stay, when set, is how long an object may be in the state. It counts from the transition to it, also while Enter
	// fails, and through restarts.
	Stay *Stay
	// Retries, when set, is how often Enter and During may fail in the state, together. Absent: until they succeed. One that
	// wants of the object what the server does not take has failed.
	Retries *Budget
	// Terminal: nothing more happens, but for During and for what a person asks for. A terminal state that is Failed is a bad end.
	Terminal, Failed bool
	// Ready says whether an object in the state is. Nil means: where the state is terminal and not Failed. It never is while
	// Enter or During fails or waits.
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

// The fields of a machine's book, in status or in status.<name of the machine>.
const (
	// BookState is the state that the object is in.
	BookState = "state"
	// BookSince is when it was entered: RFC3339, in whole seconds. Times in a state count from it.
	BookSince = "stateSince"
	// BookEntered is when the state's Enter had succeeded. It is there for states with Enter alone.
	BookEntered = "stateEntered"
	// BookFailures is how often actions have failed in a state with Retries; absent for never.
	BookFailures = "stateFailures"
	// BookUID is the uid of the object that the book is of.
	BookUID = "stateUID"
	// BookHistory are the last transitions, the newest last: a list of maps with from, to, when and why.
	BookHistory = "history"
)

// DefaultMachineID is the id of the handler of a machine without a name.
const DefaultMachineID = "machine"

// Machine adds a machine to the resource's handlers. Of the options of handlers it takes those that filter ([When], [Label],
// [Annotation] and the like), [Timeout] for each run of Enter and of During, [WithBackoff] for the wait after one that has
// failed, [After], [Was], [Makes], [Needs], and [Release] for one with Deletion: the object is let go when a terminal state is
// reached that is Failed. What is wrong with it is reported by [Operator.Validate].
func (r *Resource) Machine(m Machine, options ...Option) {
	h := m.Handler()
	for _, set := range options {
		set(&h)
	}
	r.Add(h)
}

// Handler returns a handler that is the machine, for [Resource.Add].
func (m Machine) Handler() Handler {
	h := Handler{ID: m.ID(), Causes: []Cause{Reconcile}, Machine: &m, Action: "machine", Retries: Unlimited}
	if len(m.Deletion) > 0 {
		h.Causes = append(h.Causes, Delete)
	}
	h.Needs = []Need{{Verbs: []string{"patch"}, Subresource: "status"}, {Verbs: []string{"patch"}}}
	return h
}

// Machines returns the resource's handlers that are machines, in declared order.
func (r *Resource) Machines() (out []*Handler) {
	for _, h := range r.handlers {
		if h.Machine != nil {
			out = append(out, h)
		}
	}
	return out
}

// ID is the id of the machine's handler.
func (m *Machine) ID() string {
	if m.Name == "" {
		return DefaultMachineID
	}
	return m.Name
}

// Book leads to where the machine's book lies.
func (m *Machine) Book() Path {
	if m.Name == "" {
		return Path{"status"}
	}
	return Path{"status", m.Name}
}

// Field leads to a field of the book.
func (m *Machine) Field(name string) Path { return append(m.Book(), name) }

// bookNames are the names of the book's fields.
func bookNames() []string {
	return []string{BookState, BookSince, BookEntered, BookFailures, BookUID, BookHistory}
}

// BookFields lead to all fields of the book.
func (m *Machine) BookFields() (out []Path) {
	for _, name := range bookNames() {
		out = append(out, m.Field(name))
	}
	return out
}

// GotoKey is the key of the annotation by which a person has the machine go to a state. Prefix is that of the operator's
// annotations; see [Operator.Prefix].
func (m *Machine) GotoKey(prefix string) string {
	if m.Name == "" {
		return prefix + "/goto"
	}
	return prefix + "/" + m.Name
}

// First returns the initial state, and that of objects that are being deleted; nil where there is none.
func (m *Machine) First(deleting bool) *State {
	states, initial := m.States, m.Initial
	if deleting {
		states, initial = m.Deletion, m.InitialDeletion
	}
	for i := range states {
		if initial == "" || states[i].Name == initial {
			return &states[i]
		}
	}
	return nil
}

// State returns a state by its name, and whether it is one of deletion; nil where there is none.
func (m *Machine) State(name string) (s *State, deletion bool) {
	for s, deletion = range m.All() {
		if s.Name == name {
			return s, deletion
		}
	}
	return nil, false
}

// All returns the states in order, those of deletion last, and whether they are of deletion.
func (m *Machine) All() iter.Seq2[*State, bool] {
	return func(yield func(*State, bool) bool) {
		for i := range m.States {
			if !yield(&m.States[i], false) {
				return
			}
		}
		for i := range m.Deletion {
			if !yield(&m.Deletion[i], true) {
				return
			}
		}
	}
}

// ReadyCondition is the type of the condition that says whether the object is ready, as far as the machine knows: with
// others beside it, one of its own.
func (m *Machine) ReadyCondition(alone bool) string {
	if alone {
		return Ready
	}
	id := m.ID()
	return strings.ToUpper(id[:1]) + id[1:] + Ready
}

// Ready is the type of the condition that says whether all machines of an object are in a state that is Ready.
const Ready = "Ready"

// Conditions are the types of those that the machine's states declare, each once, in order.
func (m *Machine) Conditions() (out []string) {
	for s := range m.All() {
		if s.Condition != "" && !slices.Contains(out, s.Condition) {
			out = append(out, s.Condition)
		}
	}
	return out
}

// IsReady reports whether an object in the state is ready.
func (s *State) IsReady() bool {
	if s.Ready != nil {
		return *s.Ready
	}
	return s.Terminal && !s.Failed
}

// WayKind says what has an object go a way.
type WayKind string

// The kinds of ways.
const (
	// WayWhen: its condition holds, or it has none.
	WayWhen WayKind = "when"
	// WayManual: a person asks for it.
	WayManual WayKind = "manual"
	// WayStay: the object was in the state for too long.
	WayStay WayKind = "stay"
	// WayRetries: an action of the state has failed too often.
	WayRetries WayKind = "retries"
)

// Way is a way out of a state, whatever has an object go it.
type Way struct {
	To   string
	Kind WayKind
	// Transition is the one that it is, nil for others.
	Transition *Transition
	// Field is where it is declared within the state, as in transitions[0].to.
	Field string
}

// Ways returns all ways out of the state, in the order in which they are tried.
func (s *State) Ways() (out []Way) {
	for i := range s.Transitions {
		t := &s.Transitions[i]
		kind := WayWhen
		if t.Manual {
			kind = WayManual
		}
		out = append(out, Way{t.To, kind, t, at("transitions", i) + ".to"})
	}
	if s.Stay != nil {
		out = append(out, Way{s.Stay.Then, WayStay, nil, "stay.then"})
	}
	if s.Retries != nil {
		out = append(out, Way{s.Retries.Then, WayRetries, nil, "retries.then"})
	}
	return out
}

// settle gives the handler of a machine what follows from that.
func (m *Machine) settle(h *Handler) {
	h.Conditions = slices.Concat(h.Conditions, m.Conditions(), []string{Ready})
	h.Steady = true
	h.Sets = append(h.Sets, m.BookFields()...)
	if !h.Reads.Only {
		h.Reads.Paths = append(h.Reads.Paths, Path{}) // code in Go may read anything
		return
	}
	for _, p := range m.BookFields() {
		if p[len(p)-1] != BookHistory { // which nobody acts upon
			h.Reads.Paths = append(h.Reads.Paths, p)
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"iter"
	"slices"
	"strings"
	"time"
)

// Machine is a finite state machine over each object of a resource. Its progress is in the object's status, where
// people and programs can read it: the state, the time since when the object has been in it, and the last
// transitions. So the machine goes on from there after a restart, in another process, and with another leader.
//
// The machine is a handler. It runs whenever there may be something to do (see [Reconcile]), and when one of its
// own times has come. A run does the following, in this order:
//
//   - An object without progress is in the initial state. So is an object with the progress of another object, from
//     which it was copied.
//   - A person may ask for a transition with the annotation goto. If the transition is declared, it is done; if
//     not, it is refused with an Event. Until the annotation is removed, the machine does no other transitions.
//   - The state's Enter runs until it has succeeded once, which is recorded in the progress. Then During runs.
//   - The first of the state's transitions whose When holds is taken; if there is none, that of an expired time
//     limit. The transition is written to the progress before any action of the next state runs. One run goes through
//     several states if they have no Enter.
//
// After a crash between an action and its record in the progress, the action runs again: each action runs at least
// once.
type Machine struct {
	// Name is the name of the progress in the status, status.<Name>, and the id of the machine's handler. One machine
	// of a resource may have no name: its progress is the status itself, and its handler's id is "machine".
	Name string
	// States are the states, in an order for people. The first is the initial state, unless Initial names another.
	States  []State
	Initial string
	// Deletion are the states of an object that is being deleted, in the same progress. Whatever its state was, the
	// object then goes to the first of these, or to InitialDeletion. The operator's finalizer holds the object
	// until it reaches a terminal one of these states and the actions there are done. A terminal state that is
	// Failed holds the object for good, unless [Release] is set. Without Deletion, the machine ignores objects that
	// are being deleted. Names of states must differ within a machine.
	Deletion        []State
	InitialDeletion string
	// AllowCycles permits ways back to an earlier state, which are faults otherwise. Manual transitions, and ways
	// out of a terminal state, count as ways back, too.
	AllowCycles bool
	// Migrate maps names of states that the machine does not have any more to new ones. An object whose state is
	// neither declared nor named here is held: the machine does not act on it, and Ready says so.
	Migrate map[string]string
	// History is how many transitions the object's status keeps. Zero means DefaultHistory, a negative number means
	// none.
	History int
}

// DefaultHistory is the default of Machine.History.
const DefaultHistory = 10

// State is one state of a [Machine].
type State struct {
	// Name is a CamelCase word.
	Name string
	// Enter runs once after the state was entered, in one or several attempts. During runs each time the machine
	// runs while an object is in the state, so that it reverts drift. Either may be nil. Their children stay when
	// the state is left. During sees the changes of Enter, and transitions see the changes of both; steps within
	// one of them do not see the changes of earlier steps.
	Enter, During Func
	// Action describes Enter and During for people, as in "enter: apply". Empty for Go code.
	Action string
	// ExplainCode explains the conditions within Enter and During, such as those of their steps. Authors in Go leave
	// it empty.
	ExplainCode func(s *Subject) []Clause
	// Transitions are the ways out, in order: the first whose When holds is taken. They are evaluated only after
	// Enter has succeeded.
	Transitions []Transition
	// Stay, when set, limits how long an object may be in the state. The time counts from the transition to the
	// state, also while Enter fails, and across restarts.
	Stay *Stay
	// Retries, when set, limits how often Enter and During together may fail in the state. By default there is no
	// limit. A change that the API server refuses counts as a failure.
	Retries *Budget
	// Terminal: nothing more happens, except for During and for transitions that a person asks for. A terminal
	// state that is Failed is a failure of the object.
	Terminal, Failed bool
	// Ready says whether an object in the state is ready. Nil means that it is if the state is terminal and not
	// Failed. The object is never ready while Enter or During fails or waits.
	Ready *bool
	// Condition is the type of a condition that is True in this state and in other states that declare it. In all
	// others it is False, with the state as its reason. Empty for no condition.
	Condition string
	// Doc describes the state for people, in a sentence. It is the message of the conditions.
	Doc string
}

// Transition is a way from a state to another.
type Transition struct {
	// To is the target state.
	To string
	// When must hold for the transition to be taken. Nil means as soon as Enter has succeeded.
	When Predicate
	// ExplainWhen explains When; see [Transition.Explain]. Authors in Go leave it empty.
	ExplainWhen func(s *Subject) Clause
	// Manual: the transition is taken only when a person asks for it with the annotation goto. It has no When.
	Manual bool
	// Why says for people why the transition is taken; in YAML it defaults to the expression. The history has it.
	Why string
}

// Stay limits how long an object may be in a state, and names the state that it goes to then.
type Stay struct {
	AtMost time.Duration
	// Limit, when set, gives AtMost for an object; zero means that there is no limit. It is asked in each run of the
	// machine. An error fails the run, and the object stays.
	Limit func(s *Subject) (time.Duration, error)
	Then  string
}

// Budget limits how often the actions of a state may fail, and names the state that an object goes to when they
// fail once more. AtMost 0 means at the first failure.
type Budget struct {
	AtMost int
	Then   string
}

// The fields of a machine's progress, in status or in status.<name of the machine>.
const (
	// BookState is the state that the object is in.
	BookState = "state"
	// BookSince is when the state was entered: RFC3339, in whole seconds. Time limits of the state count from it.
	BookSince = "stateSince"
	// BookEntered is when the state's Enter had succeeded. Only states with Enter have it.
	BookEntered = "stateEntered"
	// BookFailures is how often actions have failed in a state with Retries; absent for zero.
	BookFailures = "stateFailures"
	// BookUID is the uid of the object to which the progress belongs.
	BookUID = "stateUID"
	// BookHistory is the list of the last transitions, the newest last: maps with from, to, when and why.
	BookHistory = "history"
)

// DefaultMachineID is the id of the handler of a machine without a name.
const DefaultMachineID = "machine"

// Machine adds a machine to the resource's handlers. It takes these options of handlers: filters ([When], [Label],
// [Annotation] and the like), [Timeout] for each run of Enter and of During, [WithBackoff] for the wait after a
// failure, [After], [Was], [Makes], [Needs], and [Release] for a machine with Deletion: the finalizer is then also
// removed in a terminal state that is Failed. [Operator.Validate] reports faults.
func (r *Resource) Machine(m Machine, options ...Option) {
	h := m.Handler()
	for _, set := range options {
		set(&h)
	}
	r.Add(h)
}

// Handler returns the machine as a handler, for [Resource.Add].
func (m Machine) Handler() Handler {
	h := Handler{ID: m.ID(), Causes: []Cause{Reconcile}, Machine: &m, Known: Known{Action: "machine"}, Retries: Unlimited}
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

// ID returns the id of the machine's handler.
func (m *Machine) ID() string {
	if m.Name == "" {
		return DefaultMachineID
	}
	return m.Name
}

// Book returns the path of the machine's progress.
func (m *Machine) Book() Path {
	if m.Name == "" {
		return Path{"status"}
	}
	return Path{"status", m.Name}
}

// Field returns the path of a field of the progress.
func (m *Machine) Field(name string) Path { return append(m.Book(), name) }

// bookNames returns the names of the progress's fields.
func bookNames() []string {
	return []string{BookState, BookSince, BookEntered, BookFailures, BookUID, BookHistory}
}

// BookFields returns the paths of all fields of the progress.
func (m *Machine) BookFields() (out []Path) {
	for _, name := range bookNames() {
		out = append(out, m.Field(name))
	}
	return out
}

// GotoKey returns the key of the annotation by which a person asks for a transition. Prefix is that of the
// operator's annotations; see [Operator.Prefix].
func (m *Machine) GotoKey(prefix string) string {
	if m.Name == "" {
		return prefix + "/goto"
	}
	return prefix + "/" + m.Name
}

// First returns the initial state, or that of objects that are being deleted; nil if there is none.
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

// State returns the state of that name, or nil, and whether it is a state of deletion.
func (m *Machine) State(name string) (s *State, deletion bool) {
	for s, deletion = range m.All() {
		if s.Name == name {
			return s, deletion
		}
	}
	return nil, false
}

// All returns the states in order, and whether each is a state of deletion. Those of deletion come last.
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

// ReadyCondition returns the type of the condition in which the machine reports readiness. If the resource has
// several machines, each has its own.
func (m *Machine) ReadyCondition(alone bool) string {
	if alone {
		return Ready
	}
	id := m.ID()
	return strings.ToUpper(id[:1]) + id[1:] + Ready
}

// Ready is the type of the condition that is True when all machines of an object are in a state that is Ready.
const Ready = "Ready"

// Conditions returns the types of conditions that the states declare, each once, in order.
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

// WayKind says what triggers a way.
type WayKind string

// The kinds of ways.
const (
	// WayWhen: the transition's condition holds, or it has none.
	WayWhen WayKind = "when"
	// WayManual: a person asks for the transition.
	WayManual WayKind = "manual"
	// WayStay: the object was in the state for too long.
	WayStay WayKind = "stay"
	// WayRetries: an action of the state has failed too often.
	WayRetries WayKind = "retries"
)

// Way is a way out of a state, whatever triggers it.
type Way struct {
	To   string
	Kind WayKind
	// Transition is the transition, or nil for Stay and Retries.
	Transition *Transition
	// Field is the field that declares it within the state, as in transitions[0].to.
	Field string
}

// Ways returns all ways out of the state, in the order in which they are evaluated.
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

// settle notes what follows from the machine about its handler.
func (m *Machine) settle(known *Known) {
	known.Conditions = slices.Concat(known.Conditions, m.Conditions(), []string{Ready})
	known.Steady = true
	known.Sets = append(known.Sets, m.BookFields()...)
	if !known.Reads.Only {
		known.Reads.Paths = append(known.Reads.Paths, Path{}) // Go code may read any field
		return
	}
	for _, p := range m.BookFields() {
		if p[len(p)-1] != BookHistory { // handlers do not act on the history
			known.Reads.Paths = append(known.Reads.Paths, p)
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package why has the answer to the question why an operator did something to an object, or did not. Programs get it as
// JSON, and people as text. It is pure.
package why

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// NoObject is the text about an object that does not exist.
const NoObject = "there is no such object"

// Answer describes one object: the operator's work on it, and the reasons.
type Answer struct {
	// Operator is the operator's name, empty if unknown. At is when the answer was made.
	Operator string    `json:"operator,omitempty"`
	At       time.Time `json:"at"`
	// Resource is the resource as the operator declares it.
	Resource   string `json:"resource"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Unseen says why the operator does not see the object. Then most other fields are empty.
	Unseen string `json:"unseen,omitempty"`
	// Without says why no worker has made the answer. Then it has only facts from the history and the inbox.
	Without string `json:"without,omitempty"`
	// Idle says why no handler of the object runs now; nil if handlers may run.
	Idle *Idle `json:"idle,omitempty"`
	// Verdict says in one line the state of the object, and the one cause that decides.
	Verdict string `json:"verdict,omitempty"`
	// Health is the object's health after its last reconcile: ready, waiting, failing, held or paused. Since is when
	// it began.
	Health string     `json:"standing,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
	// Problem is why the last reconcile could not be finished.
	Problem string `json:"problem,omitempty"`
	// Due is when the operator looks at the object next by itself; nil for never.
	Due *time.Time `json:"due,omitempty"`
	// Deletion is set while the object is being deleted.
	Deletion *Deletion `json:"deletion,omitempty"`
	Handlers []Handler `json:"handlers,omitempty"`
	Children []Child   `json:"children,omitempty"`
	Targets  []Target  `json:"targets,omitempty"`
	Machines []Machine `json:"machines,omitempty"`
	// If the operator answered, Conditions has the condition Ready unless it is True. Otherwise it has all conditions of the
	// object, and Events has the last Events about it, the oldest first. Unread then lists unreadable objects, with the
	// reason.
	Conditions []Condition `json:"conditions,omitempty"`
	Events     []Event     `json:"events,omitempty"`
	Unread     []string    `json:"unread,omitempty"`
	// Rights are the missing rights that the object's handlers may need. Feeds are the problems with the watches of the
	// object, its children and its related objects.
	Rights  []string `json:"rights,omitempty"`
	Sources []string `json:"feeds,omitempty"`
	// History are the recorded reconciles, the oldest first, if the question asks for them.
	History []Reconcile `json:"history,omitempty"`
}

// Handler returns the part about a handler; nil for an unknown name.
func (a *Answer) Handler(id string) *Handler {
	for i := range a.Handlers {
		if a.Handlers[i].ID == id {
			return &a.Handlers[i]
		}
	}
	return nil
}

// Idle says why no handler of an object runs now.
type Idle struct {
	// Reason is a word, and Says a sentence.
	Reason string `json:"reason"`
	Says   string `json:"says"`
	// Ends tells a person how to end it; empty if a person cannot.
	Ends string `json:"ends,omitempty"`
	// Until is when it ends by itself; nil if unknown.
	Until *time.Time `json:"until,omitempty"`
}

// Handler describes one handler.
type Handler struct {
	ID string `json:"id"`
	// Operator is the handler's operator, if several may have left something on the object.
	Operator string `json:"operator,omitempty"`
	// Reason is the reason in the last reconcile, as a word. Says is the same as a sentence that begins with the
	// handler.
	Reason string `json:"reason,omitempty"`
	Says   string `json:"says"`
	// State is the handler's state in one word; empty if it has nothing to do.
	State State `json:"standing,omitempty"`
	// Cause is the cause for which it is due; empty if it has nothing to do.
	Cause string `json:"cause,omitempty"`
	// Attempts counts the attempts of unfinished work. Next is when the next one begins at the latest. Message is the
	// last error, or names the object that it waits for.
	Attempts int        `json:"attempts,omitempty"`
	Next     *time.Time `json:"next,omitempty"`
	Message  string     `json:"message,omitempty"`
	// Last is its last attempt. Changed are the changes of its view before that. Both come from the history.
	Last    *Run     `json:"last,omitempty"`
	Changed []Change `json:"changed,omitempty"`
	// Clauses are its conditions with their answers for the present object, and the values that decided.
	Clauses []dsl.Clause `json:"clauses,omitempty"`
	// Daemon: it runs all the time.
	Daemon bool `json:"daemon,omitempty"`
	// Running is when its present run began; nil while it does not run.
	Running *time.Time `json:"running,omitempty"`
}

// Run is one attempt of a handler.
type Run struct {
	At      time.Time `json:"at"`
	Cause   string    `json:"cause"`
	Number  int       `json:"attempt"`
	Outcome string    `json:"outcome"`
	Error   string    `json:"error,omitempty"`
	// Took is how long it ran.
	Took metav1.Duration `json:"took"`
}

// Change is a changed field. From and To are JSON, shortened; empty if the field is missing or hidden.
type Change struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Child is an object that the operator keeps for this one.
type Child struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Handler and As name the child as its handler does.
	Handler string `json:"handler,omitempty"`
	As      string `json:"as,omitempty"`
	// By says how the child is tied: "reference" or "record".
	By string `json:"by"`
	// State is ready, "not ready", failed, deleting, gone or unseen. Says has details if it is not ready.
	State string `json:"state"`
	Says  string `json:"says,omitempty"`
}

// People returns the child's name for people.
func (c Child) People() string { return people(c.Kind, c.Namespace, c.Name) }

// people returns an object's name for people.
func people(kind, namespace, name string) string {
	return kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// Target is an object that a handler patches, as the record on this object lists it.
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Handler is the handler, or a step of it. Entry is the key of its entry; empty without forEach.
	Handler string `json:"handler"`
	Entry   string `json:"entry,omitempty"`
	// Manager is the field manager that owns the fields, as kubectl get --show-managed-fields shows it.
	Manager string `json:"manager"`
}

// People returns the target's name for people.
func (t Target) People() string { return people(t.Kind, t.Namespace, t.Name) }

// Deletion describes the deletion of the object.
type Deletion struct {
	Since time.Time `json:"since"`
	// Finalizers are those of the object. Own is the operator's among them; empty if it is missing.
	Finalizers []string `json:"finalizers,omitempty"`
	Own        string   `json:"own,omitempty"`
	// Held lists what holds the deletion, a sentence each.
	Held []string `json:"held,omitempty"`
}

// Condition is a condition of the object.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// String formats the condition for people.
func (c Condition) String() string {
	return strings.TrimSuffix(fmt.Sprintf("condition %s is %s (%s): %s", c.Type, c.Status, c.Reason, oneLine(c.Message)), ": ")
}

// Is sets the state from the child's readiness. The error says why that is unknown.
func (c *Child) Is(is dsl.Readiness, err error) {
	switch {
	case err != nil:
		c.State, c.Says = "not ready", err.Error()
	case is.Ready:
		c.State = "ready"
	case is.Failed:
		c.State, c.Says = "failed", is.Message
	default:
		c.State, c.Says = "not ready", is.Message
	}
	c.Says = strings.TrimPrefix(c.Says, c.People()+": ")
}

// Event is an Event about the object. At is when it came last.
type Event struct {
	At      time.Time `json:"at"`
	Type    string    `json:"type,omitempty"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Count   int       `json:"count"`
}

// Machine describes where the object is in a state machine.
type Machine struct {
	ID    string `json:"id"`
	State string `json:"state,omitempty"`
	// Since is when it entered the state.
	Since *time.Time `json:"since,omitempty"`
	// Ends is when the time limit of the state is over. Then is the state after that.
	Ends *time.Time `json:"ends,omitempty"`
	Then string     `json:"then,omitempty"`
	// History are the last transitions, the oldest first. Ways are the transitions out of the state.
	History []Step `json:"history,omitempty"`
	Ways    []Way  `json:"ways,omitempty"`
}

// Step is a transition that was taken.
type Step struct {
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	At   string `json:"at,omitempty"`
	Why  string `json:"why,omitempty"`
}

// Way is a transition out of the state.
type Way struct {
	To string `json:"to"`
	// When is its condition with its answer. Says describes a transition that is not taken by itself.
	When dsl.Clause `json:"when"`
	Says string     `json:"says,omitempty"`
}

// Reconcile is a recorded reconcile.
type Reconcile struct {
	At   time.Time       `json:"at"`
	Took metav1.Duration `json:"took"`
	// Woken are the changes that woke it; empty if a wait or a timer had ended.
	Woken []string `json:"woken,omitempty"`
	// Changed are the changes of the object since the reconcile before.
	Changed  []Change  `json:"changed,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`
	Skips    []Skip    `json:"skips,omitempty"`
	Wrote    bool      `json:"wrote,omitempty"`
	// Idle is why it did not begin. Error is why it could not be finished.
	Idle  string     `json:"idle,omitempty"`
	Error string     `json:"error,omitempty"`
	Due   *time.Time `json:"due,omitempty"`
	// More counts later reconciles with the same record, the latest at a time.
	More   int        `json:"more,omitempty"`
	Latest *time.Time `json:"latest,omitempty"`
}

// Attempt is the attempt of a handler in a reconcile.
type Attempt struct {
	Handler string `json:"handler"`
	Run
}

// Skip is a handler that was due in a reconcile, and did not run.
type Skip struct {
	Handler string `json:"handler"`
	Cause   string `json:"cause"`
	Reason  string `json:"reason"`
	// Says is the reason as a sentence that begins with the handler.
	Says string `json:"says"`
}

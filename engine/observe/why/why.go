// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package why has the answer to the question why an operator did something to an object, or did not: for programs as JSON, and for
// people as text. It is pure.
package why

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// NoObject is said of an object that does not exist.
const NoObject = "there is no such object"

// Answer says of one object what its operator does with it, and why.
type Answer struct {
	// Operator is the operator's name, empty where that is not known, and At when the answer was made.
	Operator string    `json:"operator,omitempty"`
	At       time.Time `json:"at"`
	// Resource is the resource as the operator declares it.
	Resource   string `json:"resource"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Unseen says why the operator does not see the object. The answer has no more then.
	Unseen string `json:"unseen,omitempty"`
	// Without says why no reconcile has made the answer. It has then what is known without one.
	Without string `json:"without,omitempty"`
	// Idle says why no handler of the object runs now; nil where handlers may run.
	Idle *Idle `json:"idle,omitempty"`
	// Verdict says in one line how the object stands, and the one cause that decides.
	Verdict string `json:"verdict,omitempty"`
	// Standing is how the object stood after its last reconcile: ready, waiting, failing, held or paused; Since when.
	Standing string     `json:"standing,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	// Problem is why the last reconcile could not be finished.
	Problem string `json:"problem,omitempty"`
	// Due is when the operator looks at the object next by itself; nil for no such time.
	Due *time.Time `json:"due,omitempty"`
	// Deletion is there while the object is being deleted.
	Deletion *Deletion `json:"deletion,omitempty"`
	Handlers []Handler `json:"handlers,omitempty"`
	Children []Child   `json:"children,omitempty"`
	Targets  []Target  `json:"targets,omitempty"`
	Machines []Machine `json:"machines,omitempty"`
	// Conditions are those of the object, and Events the last ones about it, the oldest first, where the operator did not answer. Where
	// it did, there is the condition Ready unless it is True.
	// Unread is what could not be read then, with the reason.
	Conditions []Condition `json:"conditions,omitempty"`
	Events     []Event     `json:"events,omitempty"`
	Unread     []string    `json:"unread,omitempty"`
	// Rights are the missing rights that the object's handlers may need, and Feeds what is wrong with the watches that bring the
	// object, its children and its related objects in.
	Rights []string `json:"rights,omitempty"`
	Feeds  []string `json:"feeds,omitempty"`
	// History are the reconciles that are kept, the oldest first, if they were asked for.
	History []Pass `json:"history,omitempty"`
}

// Handler returns what is said of a handler; nil where there is none of this name.
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
	// Ends says what a person can do to end it; empty where there is nothing.
	Ends string `json:"ends,omitempty"`
	// Until is when that ends by itself; nil where that is not known.
	Until *time.Time `json:"until,omitempty"`
}

// Handler says what is to be known of one handler.
type Handler struct {
	ID string `json:"id"`
	// Operator is the operator that has it, where several may have left something on the object.
	Operator string `json:"operator,omitempty"`
	// Reason is why it ran in the last reconcile, or why not, as a word. Says is the same as a sentence that begins with the handler.
	Reason string `json:"reason,omitempty"`
	Says   string `json:"says"`
	// Standing is the same in a word; empty where it has nothing to do.
	Standing Standing `json:"standing,omitempty"`
	// Cause is what it is to run for; empty where it has nothing to do.
	Cause string `json:"cause,omitempty"`
	// Attempts counts the attempts so far of what is not finished, and Next is when the next one begins at the latest. Message is the
	// last error, or what it waits for.
	Attempts int        `json:"attempts,omitempty"`
	Next     *time.Time `json:"next,omitempty"`
	Message  string     `json:"message,omitempty"`
	// Last is its last attempt, and Changed what had changed of its view then; both as far as reconciles are kept.
	Last    *Run     `json:"last,omitempty"`
	Changed []Change `json:"changed,omitempty"`
	// Clauses are its conditions with their answers for the object as it is now, and the values that decided.
	Clauses []dsl.Clause `json:"clauses,omitempty"`
	// Daemon: it runs all the time.
	Daemon bool `json:"daemon,omitempty"`
	// Running is since when it runs; nil while it does not.
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

// Change is a field that has changed. From and To are JSON, shortened; empty where the field is missing, and where it is not shown.
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
	// By is how it is tied: "reference" or "record".
	By string `json:"by"`
	// State is ready, "not ready", failed, deleting, gone or unseen; Says says more where it is not ready.
	State string `json:"state"`
	Says  string `json:"says,omitempty"`
}

// People names the child as people do.
func (c Child) People() string { return people(c.Kind, c.Namespace, c.Name) }

// people names an object as people do.
func people(kind, namespace, name string) string {
	return kind + " " + strings.TrimPrefix(namespace+"/"+name, "/")
}

// Target is an object that a handler patches, as the record on this object lists it.
type Target struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Handler is the handler, or a step of one. Entry is the key of its entry; empty without forEach.
	Handler string `json:"handler"`
	Entry   string `json:"entry,omitempty"`
	// Manager is the field manager that owns the fields, as kubectl get --show-managed-fields has it.
	Manager string `json:"manager"`
}

// People names the target as people do.
func (t Target) People() string { return people(t.Kind, t.Namespace, t.Name) }

// Deletion says how far the deletion of the object is.
type Deletion struct {
	Since time.Time `json:"since"`
	// Finalizers are those of the object, and Own is the operator's among them; empty where it is not there.
	Finalizers []string `json:"finalizers,omitempty"`
	Own        string   `json:"own,omitempty"`
	// Held is what holds the deletion, a sentence each.
	Held []string `json:"held,omitempty"`
}

// Condition is a condition of the object.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// String says what the condition says.
func (c Condition) String() string {
	return strings.TrimSuffix(fmt.Sprintf("condition %s is %s (%s): %s", c.Type, c.Status, c.Reason, oneLine(c.Message)), ": ")
}

// Is sets the state from the child's readiness. The error says why that is not known.
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

// Machine says where the object is in a state machine.
type Machine struct {
	ID    string `json:"id"`
	State string `json:"state,omitempty"`
	// Since is when it entered the state.
	Since *time.Time `json:"since,omitempty"`
	// Ends is when the time of the state is over, and Then where it leads then.
	Ends *time.Time `json:"ends,omitempty"`
	Then string     `json:"then,omitempty"`
	// History are the last transitions, the oldest first, and Ways those that lead out of the state.
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

// Way is a transition that leads out of a state.
type Way struct {
	To string `json:"to"`
	// When is its condition with its answer. Says is more about a transition that is not taken by itself.
	When dsl.Clause `json:"when"`
	Says string     `json:"says,omitempty"`
}

// Pass is a reconcile that was kept.
type Pass struct {
	At   time.Time       `json:"at"`
	Took metav1.Duration `json:"took"`
	// Woken says what woke it; nothing where a wait or a timer had ended.
	Woken []string `json:"woken,omitempty"`
	// Changed is what had changed of the object since the reconcile before.
	Changed  []Change  `json:"changed,omitempty"`
	Attempts []Attempt `json:"attempts,omitempty"`
	Skips    []Skip    `json:"skips,omitempty"`
	Wrote    bool      `json:"wrote,omitempty"`
	// Idle says why it did not begin, and Error why it could not be finished.
	Idle  string     `json:"idle,omitempty"`
	Error string     `json:"error,omitempty"`
	Due   *time.Time `json:"due,omitempty"`
	// More reconciles followed that were like it, the latest at a time.
	More   int        `json:"more,omitempty"`
	Latest *time.Time `json:"latest,omitempty"`
}

// Attempt is the attempt of a handler in a reconcile.
type Attempt struct {
	Handler string `json:"handler"`
	Run
}

// Skip is a handler that had something to do in a reconcile, and did not run.
type Skip struct {
	Handler string `json:"handler"`
	Cause   string `json:"cause"`
	Reason  string `json:"reason"`
	// Says is the reason as a sentence that begins with the handler.
	Says string `json:"says"`
}

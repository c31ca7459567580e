// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// The reasons of conditions and Events other than states.
const (
	// EnterFailed and DuringFailed: an action has failed, and is retried.
	EnterFailed  = "EnterFailed"
	DuringFailed = "DuringFailed"
	// WhenFailed: the condition of a transition failed.
	WhenFailed = "WhenFailed"
	// Looping: transitions form a circle without an action.
	Looping = "Looping"
	// StateUnknown: the machine does not have the state in the book.
	StateUnknown = "StateUnknown"
	// GotoRefused: a person asked for a state without a transition to it.
	GotoRefused = "GotoRefused"
	// AllReady: all machines of the object are in states that are ready.
	AllReady = "AllReady"
)

// The limits of texts on an object in bytes: errors may be long, and all objects are kept in memory.
const (
	messageMost = 1024
	whyMost     = 256
)

// refusal says why a goto is refused, and what is possible.
func refusal(from *dsl.State, key, to string) string {
	var ways []string
	for _, w := range from.Ways() {
		if !slices.Contains(ways, w.To) {
			ways = append(ways, w.To)
		}
	}
	can := "no way leads out of it"
	if len(ways) > 0 {
		can = "one can go to " + strings.Join(ways, ", ")
	}
	return fmt.Sprintf("The annotation %s asks for %q, and the object is in state %s: %s", key, to, from.Name, can)
}

// hold reports that the object is in an undeclared state.
func (x *Run) hold() {
	var names []string
	for s, deletion := range x.machine.All() {
		if deletion == x.deleting() {
			names = append(names, s.Name)
		}
	}
	x.reason = StateUnknown
	x.err = fmt.Errorf("the machine has no state %q for this object: set %s to one of %s, or say in migrate where such objects go",
		x.State, x.machine.Field(dsl.BookState), strings.Join(names, ", "))
	x.request.Events.Event(dsl.Warning, StateUnknown, "Nothing is done: %v", x.err)
}

// status returns the book as a status.
func (x *Run) status() map[string]any {
	out := x.tree(x.request.Object.GetUID(), x.history, x.told)
	for _, key := range slices.Backward(x.machine.Book()[1:]) {
		out = map[string]any{key: out}
	}
	return out
}

// write adds the book to the patch, unless the state is unknown.
func (x *Run) write() {
	if x.state != nil {
		x.request.Patch.Join(&dsl.Patch{Status: x.status()})
	}
}

// say sets the conditions.
func (x *Run) say() {
	ready := x.ready()
	set := func(c metav1.Condition) {
		x.request.Patch.OfferCondition(c.Type, c.Status, c.Reason, plain.Short(c.Message, messageMost))
	}
	for _, kind := range x.machine.Conditions() {
		holds := x.state != nil && x.state.Condition == kind
		set(metav1.Condition{Type: kind, Status: truth(holds), Reason: cmp.Or(x.unknown(), x.State), Message: x.doc()})
	}
	if len(x.Others) == 0 {
		set(ready)
		return
	}
	own := ready
	own.Type = x.machine.ReadyCondition(false)
	set(own)
	set(x.together(own))
}

// unknown returns the reason for an undeclared state; empty for a declared one.
func (x *Run) unknown() string {
	if x.state == nil {
		return StateUnknown
	}
	return ""
}

// doc describes the state for people.
func (x *Run) doc() string {
	if x.state == nil {
		return x.err.Error()
	}
	return x.state.Doc
}

// ready returns the condition for this machine's readiness.
func (x *Run) ready() metav1.Condition {
	out := metav1.Condition{Type: dsl.Ready, Reason: x.State, Message: x.doc()}
	entered := x.state != nil && (x.state.Enter == nil || !x.Entered.IsZero())
	switch {
	case x.err != nil:
		out.Reason, out.Message, entered = x.reason, x.err.Error(), false
	case x.waits != nil:
		out.Message = x.waits.Error()
	}
	out.Status = truth(entered && !x.idle && x.state.IsReady())
	return out
}

// together returns the condition for all machines of the object that have reported. The first machine that is not
// ready gives the reason.
func (x *Run) together(own metav1.Condition) metav1.Condition {
	out := metav1.Condition{Type: dsl.Ready, Status: metav1.ConditionTrue, Reason: AllReady}
	said := []metav1.Condition{own}
	told := conditionsOf(x.request.Object)
	for _, m := range x.Others {
		if c, found := told[m.ReadyCondition(false)]; found {
			said = append(said, c)
		}
	}
	slices.SortFunc(said, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	for _, c := range said {
		if c.Status != metav1.ConditionTrue {
			out.Status, out.Reason = metav1.ConditionFalse, c.Reason
			out.Message = strings.TrimSuffix(c.Type+" is not: "+c.Message, ": ")
			break
		}
	}
	return out
}

func truth(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

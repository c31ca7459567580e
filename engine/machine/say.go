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

// The reasons of conditions and Events that are no states.
const (
	// EnterFailed and DuringFailed: an action has failed, and is tried again.
	EnterFailed  = "EnterFailed"
	DuringFailed = "DuringFailed"
	// WhenFailed: whether a transition is to be taken cannot be told.
	WhenFailed = "WhenFailed"
	// Looping: transitions lead round in a circle without anything to be done on it.
	Looping = "Looping"
	// StateUnknown: the book names a state that the machine does not have.
	StateUnknown = "StateUnknown"
	// GotoRefused: a person asked for a state to which there is no way.
	GotoRefused = "GotoRefused"
	// AllReady: all machines of the object are in states that are ready.
	AllReady = "AllReady"
)

// How long texts may be on an object, in bytes: an error may be of any length, and each object is kept in memory.
const (
	messageMost = 1024
	whyMost     = 256
)

// refusal says why a person's wish is not done, and what can be.
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

// hold says that the object is in a state of which nobody knows what to do in it.
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

// status is what the book says, as a status has it.
func (x *Run) status() map[string]any {
	out := x.tree(x.request.Object.GetUID(), x.history, x.told)
	for _, key := range slices.Backward(x.machine.Book()[1:]) {
		out = map[string]any{key: out}
	}
	return out
}

// write has the book written, unless nobody knows what it says.
func (x *Run) write() {
	if x.state != nil {
		x.request.Patch.Join(&dsl.Patch{Status: x.status()})
	}
}

// say tells how the object stands in conditions.
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

// unknown is the reason where the state is not declared, empty where it is.
func (x *Run) unknown() string {
	if x.state == nil {
		return StateUnknown
	}
	return ""
}

// doc says for people what the state is.
func (x *Run) doc() string {
	if x.state == nil {
		return x.err.Error()
	}
	return x.state.Doc
}

// ready is the condition that says whether the object is ready, as far as this machine knows.
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

// together is the condition for all machines of the object that have said how they stand. The first that is not ready
// gives the reason.
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

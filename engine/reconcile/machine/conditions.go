// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// The reasons of conditions and Events other than states.
const (
	// EnterFailed and DuringFailed: an action has failed, and is tried again.
	EnterFailed  = "EnterFailed"
	DuringFailed = "DuringFailed"
	// WhenFailed: the condition of a transition failed.
	WhenFailed = "WhenFailed"
	// StayFailed: computing how long an object may be in its state failed.
	StayFailed = "StayFailed"
	// Looping: transitions form a circle without an action.
	Looping = "Looping"
	// StateUnknown: the machine does not have the state in the progress.
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

// hold reports that the object is in an undeclared state.
func (x run) hold(s state) state {
	var names []string
	for declared, deletion := range x.machine.All() {
		if deletion == x.deleting() {
			names = append(names, declared.Name)
		}
	}
	s.reason = StateUnknown
	s.err = fmt.Errorf("the machine has no state %q for this object: set %s to one of %s, or say in migrate where such objects go",
		s.State, x.machine.Field(dsl.BookState), strings.Join(names, ", "))
	x.request.Events.Event(dsl.Warning, StateUnknown, "Nothing is done: %v", s.err)
	return s
}

// conditions returns the conditions of the machine.
func (x run) conditions(s state) (out []metav1.Condition) {
	reason := s.State
	if s.declared == nil {
		reason = StateUnknown
	}
	for _, kind := range x.machine.Conditions() {
		holds := s.declared != nil && s.declared.Condition == kind
		out = append(out, metav1.Condition{Type: kind, Status: truth(holds), Reason: reason, Message: s.doc()})
	}
	ready := s.ready(x.machine.ReadyCondition(len(x.Others) == 0))
	out = append(out, ready)
	if len(x.Others) > 0 {
		out = append(out, together(ready, x.Others, x.request.Object))
	}
	for i := range out {
		out[i].Message = plain.Short(out[i].Message, messageMost)
	}
	return out
}

// doc describes the state for people.
func (s state) doc() string {
	if s.declared == nil {
		return s.err.Error()
	}
	return s.declared.Doc
}

// ready returns the condition for the machine's readiness.
func (s state) ready(kind string) metav1.Condition {
	out := metav1.Condition{Type: kind, Reason: s.State, Message: s.doc()}
	ready := s.entered() && !s.idle && s.declared.IsReady()
	switch {
	case s.err != nil:
		out.Reason, out.Message, ready = s.reason, s.err.Error(), false
	case s.waits != nil:
		out.Message = s.waits.Error()
	}
	out.Status = truth(ready)
	return out
}

// together returns the condition for all machines of the object that have reported: this one, and others by their
// conditions on the object. The first machine that is not ready gives the reason.
func together(own metav1.Condition, others []*dsl.Machine, o *unstructured.Unstructured) metav1.Condition {
	out := metav1.Condition{Type: dsl.Ready, Status: metav1.ConditionTrue, Reason: AllReady}
	reported, all := []metav1.Condition{own}, conditionsOf(o)
	for _, m := range others {
		if c, found := all[m.ReadyCondition(false)]; found {
			reported = append(reported, c)
		}
	}
	slices.SortFunc(reported, func(a, b metav1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	for _, c := range reported {
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

// retire removes conditions of an earlier version of the machine, or of a former machine: their reason is the state in
// that machine's progress, or a failure. The write also checks that nothing declares the condition and that this
// operator has set it. If some code may set undeclared conditions, all stay.
func (x run) retire() {
	if !x.Declared || x.Gone {
		return
	}
	all := conditionsOf(x.request.Object)
	reasons := reasonsOf(append(slices.Clip(x.Others), x.machine), x.request.Object, all)
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if kind != "" && slices.Contains(reasons, all[kind].Reason) {
			x.request.Patch.RetireCondition(kind)
		}
	}
}

// reasonsOf returns the reasons of machines' conditions on an object. The cache may lack the progress of a former
// machine, but its own condition has the state.
func reasonsOf(machines []*dsl.Machine, o *unstructured.Unstructured, all map[string]metav1.Condition) []string {
	out := []string{EnterFailed, DuringFailed, WhenFailed, StayFailed, Looping, StateUnknown}
	for _, m := range machines {
		if b, found := Read(m, o); found {
			out = append(out, b.State)
		}
	}
	for kind, c := range all {
		if of, is := strings.CutSuffix(kind, dsl.Ready); is && of != "" {
			out = append(out, c.Reason)
		}
	}
	return out
}

// conditionsOf returns an object's conditions by type.
func conditionsOf(o *unstructured.Unstructured) map[string]metav1.Condition {
	out := map[string]metav1.Condition{}
	list, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "conditions")
	items, _ := list.([]any)
	for _, item := range items {
		c, _ := item.(map[string]any)
		text := func(key string) string {
			s, _ := c[key].(string)
			return s
		}
		out[text("type")] = metav1.Condition{
			Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"),
		}
	}
	return out
}

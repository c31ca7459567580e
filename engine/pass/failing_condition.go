// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Failing is the type of the condition that says which handlers fail.
const Failing = "HandlersFailing"

// The reasons of that condition, the gravest first.
const (
	// Failed: a handler has failed for good.
	Failed = "HandlerFailed"
	// Retried: a handler fails, and is tried again.
	Retried = "HandlerFailing"
	// FilterFailed: whether a handler sees the object cannot be told.
	FilterFailed = "FilterFailed"
)

// FailingHandler is how one handler of an object fares, as far as it says so by no condition of its own.
type FailingHandler struct {
	ID string
	// Reason is why it fails, empty when it does not; Message is in what words.
	Reason, Message string
	// Ran: it has run in this pass. One that did not was told when it did.
	Ran bool
	// Undecided: it is about to be tried again, which will tell whether it is mended.
	Undecided bool
}

// Said is what an object's condition says of failing handlers.
type Said struct {
	// Named are the handlers that it names.
	Named []string

	there            map[string]any
	operator, reason string
	message          string
	foreign          bool
}

// SaidOf reads the condition that an operator has left on an object.
func SaidOf(o *unstructured.Unstructured, operator string) Said {
	s := Said{operator: operator}
	for _, c := range ConditionsOf(o) {
		if c["type"] == Failing {
			s.there = c
		}
	}
	if s.there == nil {
		return s
	}
	var ours bool
	s.message, ours = strings.CutPrefix(ConditionText(s.there, "message"), s.prefix())
	s.foreign = s.there["status"] != string(metav1.ConditionTrue) || !ours
	s.reason = ConditionText(s.there, "reason")
	if names, _, found := strings.Cut(s.message, ": "); found {
		s.Named = strings.Split(names, ", ")
	}
	return s
}

// prefix is how the operator begins what it says.
func (s Said) prefix() string { return "Operator " + s.operator + ": " }

// Foreign reports whether the condition is somebody else's, and so nobody's to change.
func (s Said) Foreign() bool { return s.foreign }

// Next returns what the condition is to say of the handlers, all of the object's that say so by no condition of their
// own: another condition, or that it is to go; neither when it is right. It changes when another set of handlers fails
// than before, not for each attempt: attempts would cost requests. Owed: it could not be written before, so handlers that
// did not run now count, too. Failing reports whether any handler fails.
func (s Said) Next(handlers []FailingHandler, owed bool) (set *metav1.Condition, mended, failing bool) {
	t := s.tally(handlers, owed)
	failing = len(t.names) > 0
	who := strings.Join(t.names, ", ") + ": "
	switch {
	case t.open && !t.news:
		// What is said holds until it is known better.
	case failing && (s.reason != t.reason || !strings.HasPrefix(s.message, who)):
		set = &metav1.Condition{Type: Failing, Status: metav1.ConditionTrue, Reason: t.reason, Message: s.prefix() + who + t.message}
	case !failing && s.there != nil:
		mended = true
	}
	return set, mended, failing
}

// tally is what there is to say. Reason is the gravest one, message that of the first handler that is known to fail.
type tally struct {
	names           []string
	reason, message string
	// open: whether a handler that the condition names is mended is not known yet; news: it does not name one that
	// fails.
	open, news bool
}

func (s Said) tally(handlers []FailingHandler, owed bool) (t tally) {
	for _, h := range handlers {
		known := slices.Contains(s.Named, h.ID)
		switch {
		case h.Reason != "" && (known || h.Reason == FilterFailed || h.Ran || owed):
			t.names, t.news = append(t.names, h.ID), t.news || !known
			t.reason, t.message = graver(t.reason, h.Reason), cmp.Or(t.message, h.Message)
		case known && h.Undecided:
			t.names, t.open = append(t.names, h.ID), true
		}
	}
	return t
}

// graver is the reason that says more.
func graver(a, b string) string {
	for _, reason := range []string{Failed, Retried, FilterFailed} {
		if a == reason || b == reason {
			return reason
		}
	}
	return ""
}

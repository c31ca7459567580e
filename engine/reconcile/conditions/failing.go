// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The reasons of [HandlersFailing], the gravest first.
const (
	// HandlerFailed: a handler has failed for good.
	HandlerFailed = "HandlerFailed"
	// HandlerFailing: a handler fails, and is tried again.
	HandlerFailing = "HandlerFailing"
	// FilterFailed: a filter failed, so it is unknown whether its handler sees the object.
	FilterFailed = "FilterFailed"
)

// Failures is the condition [HandlersFailing] of an object.
type Failures struct {
	// Named are the handlers that the condition names.
	Named []string

	there            map[string]any
	operator, reason string
	message          string
	foreign          bool
}

// FailuresOf reads the condition that an operator has left on an object. Names are those of the operator, the present one first.
func FailuresOf(o *unstructured.Unstructured, names ...string) Failures {
	f := Failures{operator: names[0], there: Of(o, HandlersFailing)}
	if f.there == nil {
		return f
	}
	var name string
	name, f.message = cutName(Text(f.there, "message"), names)
	f.foreign = f.there["status"] != string(metav1.ConditionTrue) || name == ""
	f.reason = Text(f.there, "reason")
	if names, _, found := strings.Cut(f.message, ": "); found {
		f.Named = strings.Split(names, ", ")
	}
	if name != f.operator {
		f.message = "" // it is set again, under the new name
	}
	return f
}

// signed returns a message of an operator in a condition.
func signed(operator, message string) string { return "Operator " + operator + ": " + message }

// cutName returns which of the operators has signed a message, and the rest; the name is empty if none has.
func cutName(message string, names []string) (name, rest string) {
	for _, name := range names {
		if rest, is := strings.CutPrefix(message, signed(name, "")); is {
			return name, rest
		}
	}
	return "", message
}

// Foreign reports whether the condition is another controller's. It is left alone then.
func (f Failures) Foreign() bool { return f.foreign }

// Next returns the condition to set, or mended if it has to go; neither if it is right. Handlers are all of the object's that
// report in no condition of their own. The condition changes when another set of handlers fails, not with each attempt: attempts
// would cost requests. Owed: it could not be written before, so handlers that did not run now count, too. Failing reports
// whether any handler fails.
func (f Failures) Next(handlers []Handler, owed bool) (set *metav1.Condition, mended, failing bool) {
	t := f.tally(handlers, owed)
	failing = len(t.names) > 0
	who := strings.Join(t.names, ", ") + ": "
	switch {
	case t.open && !t.news:
		// The condition stays until the outcome is known.
	case failing && (f.reason != t.reason || !strings.HasPrefix(f.message, who)):
		set = &metav1.Condition{Type: HandlersFailing, Status: metav1.ConditionTrue, Reason: t.reason, Message: signed(f.operator, who+t.message)}
	case !failing && f.there != nil:
		mended = true
	}
	return set, mended, failing
}

// tally is the sum of all handlers. Reason is the gravest one, message that of the first handler that is known to fail.
type tally struct {
	names           []string
	reason, message string
	// open: it is unknown whether a handler that the condition names still fails. news: a handler fails that it does not name.
	open, news bool
}

func (f Failures) tally(handlers []Handler, owed bool) (t tally) {
	for _, h := range handlers {
		known := slices.Contains(f.Named, h.ID)
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

// graver returns the graver of two reasons.
func graver(a, b string) string {
	for _, reason := range []string{HandlerFailed, HandlerFailing, FilterFailed} {
		if a == reason || b == reason {
			return reason
		}
	}
	return ""
}

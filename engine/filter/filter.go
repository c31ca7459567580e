// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package filter asks handlers' filters on labels and annotations, and keeps what all filters say of one object: their
// answers in a pass, and from one pass to the next which of them failed.
package filter

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Chooses reports whether the handler's filters on labels and annotations hold for an object.
func Chooses(h *dsl.Handler, object metav1.Object) bool {
	return fulfils(object.GetLabels, h.Labels) && fulfils(object.GetAnnotations, h.Annotations)
}

// fulfils reports whether labels or annotations fulfil every condition. They are copied when they are asked for, and
// most handlers have no conditions.
func fulfils(get func() map[string]string, conditions []dsl.Match) bool {
	if len(conditions) == 0 {
		return true
	}
	set := get()
	return !slices.ContainsFunc(conditions, func(m dsl.Match) bool { return !m.Matches(set) })
}

// Question is what a pass asks a handler's filters: whether it sees the object, for a cause.
type Question struct {
	Handler *dsl.Handler
	Cause   dsl.Cause
}

// Answer is what they say.
type Answer struct {
	Holds bool
	Err   error
	// Unread: they could not read children, which may be otherwise a moment later.
	Unread bool
}

// Keeps reports whether the handler sees the object, or may see it.
func (a Answer) Keeps() bool { return a.Holds || a.Err != nil }

// Answers are those of one pass, each asked for once, as filters may be costly.
type Answers struct {
	known map[Question]Answer
	// unsure: whether a handler that holds the object sees it could not be told.
	unsure bool
}

// Known returns the answer to a question, if it was asked.
func (a *Answers) Known(q Question) (Answer, bool) {
	known, asked := a.known[q]
	return known, asked
}

// Note keeps an answer.
func (a *Answers) Note(q Question, answer Answer) {
	if a.known == nil {
		a.known = map[Question]Answer{}
	}
	a.known[q] = answer
}

// Reset has all filters asked once more: handlers have changed what they look at.
func (a *Answers) Reset() { a.known = nil }

// Doubt notes that it cannot be told whether a handler sees an object that it holds. Unsure reports whether that was
// so of any in the pass.
func (a *Answers) Doubt() { a.unsure = true }

// Unsure is described at [Answers.Doubt].
func (a *Answers) Unsure() bool { return a.unsure }

// Faults are an object's filters that failed when they were asked last. The zero value has none.
type Faults struct{ known map[kind]fault }

// kind is a question as far as its failing is told apart: whether it is asked for a deletion, before which it is
// asked of every object that lives.
type kind struct {
	handler  string
	deletion bool
}

func kindOf(q Question) kind { return kind{q.Handler.ID, q.Cause == dsl.Delete} }

// fault is why a filter failed.
type fault struct {
	text   string
	unread bool // see Answer
}

// Failed notes that a filter failed, and reports whether it has failed with the same words before.
func (f *Faults) Failed(q Question, a Answer) (before bool) {
	text := a.Err.Error()
	before = f.with(q.Handler, text)
	if f.known == nil {
		f.known = map[kind]fault{}
	}
	f.known[kindOf(q)] = fault{text, a.Unread}
	return before
}

// Answered notes that a filter has an answer, and reports whether it had none before.
func (f *Faults) Answered(q Question) (mended bool) {
	was, failed := f.known[kindOf(q)]
	delete(f.known, kindOf(q))
	return failed && !f.with(q.Handler, was.text)
}

// with reports whether a filter of the handler has failed with these words.
func (f *Faults) with(h *dsl.Handler, text string) bool {
	return f.known[kind{h.ID, false}].text == text || f.known[kind{h.ID, true}].text == text
}

// Of says why it cannot be told whether the handler sees the object, empty when it can, or may be in a moment.
func (f *Faults) Of(h *dsl.Handler) string {
	for _, deletion := range []bool{false, true} {
		if found := f.known[kind{h.ID, deletion}]; !found.unread && found.text != "" {
			return found.text
		}
	}
	return ""
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package filter evaluates handlers' filters on labels and annotations. It keeps the answers of all filters for one
// object: those of a reconcile, and between reconciles the failures. It is pure.
package filter

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Matches reports whether the handler's filters on labels and annotations match an object.
func Matches(h *dsl.Handler, object metav1.Object) bool {
	return fulfils(object.GetLabels, h.Labels) && fulfils(object.GetAnnotations, h.Annotations)
}

// fulfils reports whether labels or annotations fulfil every condition. Get copies them, so it is only called if
// there are conditions.
func fulfils(get func() map[string]string, conditions []dsl.Match) bool {
	if len(conditions) == 0 {
		return true
	}
	set := get()
	return !slices.ContainsFunc(conditions, func(m dsl.Match) bool { return !m.Matches(set) })
}

// Question identifies an evaluation of a handler's filters, for a cause.
type Question struct {
	Handler *dsl.Handler
	Cause   dsl.Cause
	// Time: it is not about the filters, but about the time at which the handler runs; see dsl.Timing.At.
	Time bool
}

// Answer is the result of an evaluation.
type Answer struct {
	Holds bool
	Err   error
	// Unread: the filters could not read children, which may succeed a moment later.
	Unread bool
}

// Keeps reports whether the filters match, or may match.
func (a Answer) Keeps() bool { return a.Holds || a.Err != nil }

// Answers are the answers of one reconcile. Each is evaluated once, because filters may be expensive.
type Answers struct {
	known map[Question]Answer
	// unsure: for a handler that holds the object, it is not known whether its filters match.
	unsure bool
	// due are handlers whose filters failed and that would have something to do if they matched.
	due []string
}

// Known returns the answer to a question, if it was evaluated.
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

// Reset drops the answers, because handlers have changed what filters look at.
func (a *Answers) Reset() { a.known = nil }

// Due notes that a handler would have something to do, and that its filter failed.
func (a *Answers) Due(handler string) { a.due = append(a.due, handler) }

// WasDue reports whether Due was called for the handler in this reconcile. Handlers that come after it wait, as after a
// failure.
func (a *Answers) WasDue(handler string) bool { return slices.Contains(a.due, handler) }

// SetUnsure notes that a filter of a handler that holds the object has failed.
func (a *Answers) SetUnsure() { a.unsure = true }

// Unsure reports whether Doubt was called in this reconcile.
func (a *Answers) Unsure() bool { return a.unsure }

// Faults are the filters of an object whose last evaluation failed. The zero value has none.
type Faults struct{ known map[kind]fault }

// kind distinguishes the failures of one handler: a filter may fail for the handler's time, for a deletion, or for other
// causes. The filter for deletions is also evaluated while the object lives.
type kind struct {
	handler        string
	time, deletion bool
}

func kindOf(q Question) kind { return kind{q.Handler.ID, q.Time, q.Cause == dsl.Delete} }

// kindsOf returns the kinds of a handler's questions.
func kindsOf(handler string) []kind {
	return []kind{{handler: handler}, {handler: handler, deletion: true}, {handler: handler, time: true}}
}

// fault is a failure of a filter, with the time of the next evaluation.
type fault struct {
	of     Question
	text   string
	unread bool // see Answer
	// view is the digest of the evaluated object; failures is how often in a row it failed.
	view     string
	failures int
	// again is the time of the next evaluation.
	again time.Time
	// failed: it has failed in this reconcile. mended: it has not failed in this reconcile, and has had an answer.
	failed, mended bool
}

// Moment is the time and the object of an evaluation.
type Moment struct {
	Now time.Time
	// View is a digest of the evaluated object. If it changes, the back-off starts over.
	View string
	// Backoff returns the wait after a number of failures in a row.
	Backoff func(failures int) time.Duration
}

// Failed notes a failure. It reports whether the filter has failed with the same text before, and returns the time
// of the next evaluation. An earlier failure does not move that time.
func (f *Faults) Failed(q Question, a Answer, m Moment) (before bool, again time.Time) {
	text := a.Err.Error()
	before = f.with(q.Handler.ID, text)
	now := f.known[kindOf(q)]
	if now.view != m.View {
		now.failures, now.again = 0, time.Time{}
	}
	if !m.Now.Before(now.again) {
		now.failures++
		now.again = m.Now.Add(m.Backoff(now.failures))
	}
	now.of, now.text, now.unread, now.view, now.failed, now.mended = q, text, a.Unread, m.View, true, false
	if f.known == nil {
		f.known = map[kind]fault{}
	}
	f.known[kindOf(q)] = now
	return before, now.again
}

// Clone returns a copy.
func (f *Faults) Clone() Faults { return Faults{maps.Clone(f.known)} }

// Begin must be called when a reconcile begins. It forgets which filters failed or worked again in the last one.
func (f *Faults) Begin() {
	for k, one := range f.known {
		one.failed, one.mended = false, false
		f.known[k] = one
	}
}

// Answered notes that a filter has an answer. It may still fail for another cause in the same reconcile.
func (f *Faults) Answered(q Question) {
	if known, found := f.known[kindOf(q)]; found && !known.failed {
		known.mended = true
		f.known[kindOf(q)] = known
	}
}

// NotEvaluated returns the questions whose last evaluation failed and that were not evaluated in this reconcile.
func (f *Faults) NotEvaluated() (out []Question) {
	for _, one := range f.known {
		if !one.failed && !one.mended {
			out = append(out, one.of)
		}
	}
	return out
}

// Recovered removes the filters that have not failed in a reconcile and had an answer. It returns their handlers, except
// those with another filter that fails with the same text.
func (f *Faults) Recovered() (handlers []string) {
	for k, one := range f.known {
		if !one.mended {
			continue
		}
		delete(f.known, k)
		if !f.with(k.handler, one.text) {
			handlers = append(handlers, k.handler)
		}
	}
	if len(f.known) == 0 {
		f.known = nil
	}
	slices.Sort(handlers)
	return handlers
}

// with reports whether a filter of the handler has failed with this text.
func (f *Faults) with(handler, text string) bool {
	return slices.ContainsFunc(kindsOf(handler), func(k kind) bool { return f.known[k].text == text })
}

// Of says why it is not known whether the handler's filters match; empty if it is known, or will be in a moment.
func (f *Faults) Of(h *dsl.Handler) string {
	for _, k := range kindsOf(h.ID) {
		if found := f.known[k]; !found.unread && !found.mended && found.text != "" {
			return found.text
		}
	}
	return ""
}

// Unmatched names the first label or annotation of an object that does not match the handler's filters, with its
// value. It is empty if all match. Hidden leaves out the values of annotations, as for a Secret.
func Unmatched(h *dsl.Handler, object metav1.Object, hidden bool) string {
	for _, m := range h.Labels {
		if set := object.GetLabels(); !m.Matches(set) {
			return "label " + unmatched(m, set, false)
		}
	}
	for _, m := range h.Annotations {
		if set := object.GetAnnotations(); !m.Matches(set) {
			return "annotation " + unmatched(m, set, hidden)
		}
	}
	return ""
}

// unmatched says why a set does not fulfil a condition.
func unmatched(m dsl.Match, set map[string]string, hidden bool) string {
	value, found := set[m.Key]
	switch {
	case !found:
		return m.Key + " is not set"
	case m.Op == dsl.Absent:
		return m.Key + " is set"
	case hidden:
		return fmt.Sprintf("%s is not %q", m.Key, m.Value)
	}
	return fmt.Sprintf("%s is %q, want %q", m.Key, value, m.Value)
}

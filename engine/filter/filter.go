// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package filter asks handlers' filters on labels and annotations. It keeps the answers of all filters about one object: those
// of a pass, and from pass to pass which filters failed. It is pure.
package filter

import (
	"fmt"
	"slices"
	"time"

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
	// due are handlers that have something to do, if their filters hold, and these failed.
	due []string
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

// Due notes that a handler has something to do if its filter holds, which failed. WasDue reports whether that was so of a
// handler in the pass: what comes after it waits, as for one that failed.
func (a *Answers) Due(handler string) { a.due = append(a.due, handler) }

// WasDue is described at [Answers.Due].
func (a *Answers) WasDue(handler string) bool { return slices.Contains(a.due, handler) }

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

// fault is why a filter failed, and when it is asked again.
type fault struct {
	text   string
	unread bool // see Answer
	// view is what it was asked about, failures how often it has failed with that in a row.
	view     string
	failures int
	// again is when it is to be asked again.
	again time.Time
	// failed: it has failed in this pass. mended: it has not, and has had an answer.
	failed, mended bool
}

// Moment is when a filter is asked, and about what.
type Moment struct {
	Now time.Time
	// View is a digest of what it is asked about. With another one the back-off begins again.
	View string
	// Backoff returns how long to wait after so many failures in a row.
	Backoff func(failures int) time.Duration
}

// Failed notes that a filter failed. It reports whether it has failed with the same words before, and returns when it is to be
// asked again. A failure before that time does not move it.
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
	now.text, now.unread, now.view, now.failed, now.mended = text, a.Unread, m.View, true, false
	if f.known == nil {
		f.known = map[kind]fault{}
	}
	f.known[kindOf(q)] = now
	return before, now.again
}

// Begin begins a pass.
func (f *Faults) Begin() {
	for k, one := range f.known {
		one.failed, one.mended = false, false
		f.known[k] = one
	}
}

// Answered notes that a filter has an answer. In the same pass it may fail for another cause.
func (f *Faults) Answered(q Question) {
	if known, found := f.known[kindOf(q)]; found && !known.failed {
		known.mended = true
		f.known[kindOf(q)] = known
	}
}

// Mended forgets the filters that have not failed in a pass and had an answer. It names their handlers, except those with
// another filter that fails with the same words.
func (f *Faults) Mended() (handlers []string) {
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

// with reports whether a filter of the handler has failed with these words.
func (f *Faults) with(handler, text string) bool {
	living, deletion := f.known[kind{handler: handler}], f.known[kind{handler: handler, deletion: true}]
	return living.text == text || deletion.text == text
}

// Of says why it cannot be told whether the handler sees the object, empty when it can, or may be in a moment.
func (f *Faults) Of(h *dsl.Handler) string {
	for _, deletion := range []bool{false, true} {
		if found := f.known[kind{handler: h.ID, deletion: deletion}]; !found.unread && !found.mended && found.text != "" {
			return found.text
		}
	}
	return ""
}

// Unmatched names the first label or annotation of an object that the handler's filters do not accept, with its value. It is empty
// where all match.
func Unmatched(h *dsl.Handler, object metav1.Object) string {
	for _, m := range h.Labels {
		if set := object.GetLabels(); !m.Matches(set) {
			return "label " + unmatched(m, set)
		}
	}
	for _, m := range h.Annotations {
		if set := object.GetAnnotations(); !m.Matches(set) {
			return "annotation " + unmatched(m, set)
		}
	}
	return ""
}

// unmatched says how a set does not fulfil a condition.
func unmatched(m dsl.Match, set map[string]string) string {
	value, found := set[m.Key]
	switch {
	case !found:
		return m.Key + " is not set"
	case m.Op == dsl.Absent:
		return m.Key + " is set"
	}
	return fmt.Sprintf("%s is %q, want %q", m.Key, value, m.Value)
}

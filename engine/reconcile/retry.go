// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// retryRefused is the reason of the Event about an annotation that names no handler of the object.
const retryRefused = "RetryRefused"

// mostUnknown bounds the length, in bytes, of unknown names in a log line and an Event.
const mostUnknown = 512

// retryAsked returns the handlers in the annotation with which a person asks for a retry, and whether there is one.
func (p *run) retryAsked() (ids string, asked bool) {
	ids, asked = p.Object.GetAnnotations()[p.Rules.Retry]
	return ids, asked
}

// retryNow makes a handler due if the annotation names it. Some reports whether there was something to retry.
func (p *run) retryNow(ids string, r progress.Handler) (named, some bool) {
	if named = isNamed(ids, r.ID); !named {
		return false, false
	}
	e, some := p.progress.Entry(r).RetryNow()
	if some {
		p.progress.Put(r, e)
	}
	return true, some
}

// namesIn returns the names of handlers in the annotation.
func namesIn(ids string) []string {
	return strings.FieldsFunc(ids, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// isNamed reports whether the annotation names a handler, or all.
func isNamed(ids, handler string) bool {
	return strings.TrimSpace(ids) == "*" || slices.Contains(namesIn(ids), handler)
}

// retry makes the named handlers run now: "*" names all that fail, wait or failed for good. Handlers that have succeeded
// do not run, so "*" on many objects repeats no finished work.
func (p *run) retry(st State, ids string) State {
	st.Retried = true
	known, retried, idle := []string{}, []string{}, []string{}
	for _, r := range p.Rules.Readers {
		known = append(known, r.ID)
		switch named, some := p.retryNow(ids, r); {
		case some:
			retried = append(retried, r.ID)
		case named:
			idle = append(idle, r.ID)
		}
	}
	for _, d := range p.Rules.Daemons {
		known = append(known, d.ID)
		switch {
		case !isNamed(ids, d.ID):
		case p.Daemons.Again(p.Key, d.Handler):
			retried = append(retried, d.ID)
		default:
			idle = append(idle, d.ID)
		}
	}
	if len(retried)+len(idle) > 0 {
		st = st.noted(Note{Line: "handlers are tried again, as the annotation asks", Values: []any{"handlers", retried, "nothingToRetry", idle}})
	}
	names, all := namesIn(ids), strings.TrimSpace(ids) == "*"
	unknown := slices.DeleteFunc(slices.Clone(names), func(id string) bool { return all || slices.Contains(known, id) })
	if len(names) > 0 && len(unknown) == 0 {
		return st
	}
	text := cmp.Or(plain.Short(strings.Join(unknown, ", "), mostUnknown), "no handler")
	message := fmt.Sprintf("The annotation %s names %s; the handlers are %s", p.Rules.Retry, text, strings.Join(known, ", "))
	return st.noted(Note{Line: "annotation names a handler that does not exist", Warning: true, Values: []any{"unknown", text}, Action: "retry", Reason: retryRefused, Message: message})
}

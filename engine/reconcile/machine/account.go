// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// Account says where an object is in the machine of a handler, how it came there, and which transitions lead out. About
// is the subject for conditions. Prefix is the prefix of the operator's annotations.
func Account(h *dsl.Handler, o *unstructured.Unstructured, prefix string, about *dsl.Subject) why.Machine {
	m, out := h.Machine, why.Machine{ID: h.ID}
	p, found := placeOf(m, o)
	if !found {
		return out
	}
	if out.State = p.State; !p.Since.IsZero() {
		out.Since = &p.Since
	}
	for _, entry := range p.history {
		out.History = append(out.History, stepOf(entry))
	}
	p.declared, _ = m.State(p.State)
	if p.declared == nil {
		return out
	}
	p.declared, _ = limited(p.declared, about) // the handler reports the error
	if stay := p.declared.Stay; stay != nil && !p.Since.IsZero() {
		ends := p.ends()
		out.Ends, out.Then = &ends, stay.Then
	}
	for _, t := range p.declared.Transitions {
		out.Ways = append(out.Ways, wayOf(t, p, m.GotoKey(prefix), about))
	}
	return out
}

// wayOf describes a transition, with the answer of its condition.
func wayOf(t dsl.Transition, p place, gotoKey string, about *dsl.Subject) why.Way {
	out := why.Way{To: t.To}
	switch {
	case t.Manual:
		out.Says = fmt.Sprintf("a person takes it, by the annotation %s", gotoKey)
	case !p.entered():
		out.Says = "not before the state is entered"
	default:
		out.When = t.Explain(about)
	}
	return out
}

// stepOf reads an entry of the history. It may be anything that somebody has written to the status.
func stepOf(entry any) (out why.Step) {
	fields, _ := entry.(map[string]any)
	text := func(key string) string {
		value, _ := fields[key].(string)
		return value
	}
	out.From, out.To, out.Why = text("from"), text("to"), text("why")
	if at, err := time.Parse(time.RFC3339, text("when")); err == nil {
		out.At = at.UTC().Format(time.RFC3339)
	}
	return out
}

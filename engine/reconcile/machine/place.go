// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// place is where an object is in its machine, and how it came there.
type place struct {
	Book
	// declared is the state as the machine declares it; nil for an undeclared one.
	declared *dsl.State
	// moves are the transitions of this attempt. history also has earlier ones. rewrite: the history in the status is
	// out of date.
	moves   []Move
	history []any
	rewrite bool
}

// placeOf reads where an object is. It is not found if the object has no progress of its own.
func placeOf(m *dsl.Machine, o *unstructured.Unstructured) (p place, found bool) {
	if p.Book, found = Read(m, o); found {
		p.history = historyOf(m, o)
	}
	return p, found
}

// begin returns the initial place. If an earlier attempt has begun there, its time counts.
func begin(m *dsl.Machine, deleting bool, known Done) place {
	p := place{Book: Book{State: m.First(deleting).Name, Since: now()}, rewrite: true}
	if known.State == p.State {
		p.Since = known.Since
	}
	return p
}

// now returns the time in whole seconds.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// find returns the place with its state as the machine declares it, and whether that is a state of deletion.
func (p place) find(m *dsl.Machine) (_ place, deletion bool) {
	if p.Since.IsZero() { // it is missing or invalid: the time counts from now
		p.Since = now()
	}
	p.declared, deletion = m.State(p.State)
	return p, deletion
}

// after returns the place after a transition to a state.
func (p place) after(m *dsl.Machine, to, why string) place {
	next, _ := m.State(to)
	v := Move{From: p.State, To: to, At: now(), Why: plain.Short(why, whyMost), Failed: next.Failed}
	v.Stayed = max(0, v.At.Sub(p.Since))
	return place{
		Book: Book{State: to, Since: v.At}, declared: next,
		moves: append(slices.Clip(p.moves), v), history: kept(m, p.history, v), rewrite: true,
	}
}

// entered reports whether the object has entered its state, so that transitions may be taken.
func (p place) entered() bool {
	return p.declared != nil && (p.declared.Enter == nil || !p.Entered.IsZero())
}

// acting reports whether the state has actions.
func (p place) acting() bool { return p.declared.Enter != nil || p.declared.During != nil }

// ends returns when the time limit of the state expires. Times are in whole seconds, so it is up to one second
// late, and never early.
func (p place) ends() time.Time { return p.Since.Add(p.declared.Stay.AtMost + time.Second) }

// spent reports whether actions have failed more often than the state allows.
func (p place) spent() bool {
	b := p.declared.Retries
	return b != nil && p.Failures > int64(b.AtMost)
}

// status returns the place as the status of an object.
func (p place) status(m *dsl.Machine, uid types.UID) map[string]any {
	out := p.tree(uid)
	switch {
	case p.rewrite && len(p.history) > 0:
		out[dsl.BookHistory] = p.history
	case p.rewrite:
		out[dsl.BookHistory] = nil
	}
	for _, key := range slices.Backward(m.Book()[1:]) {
		out = map[string]any{key: out}
	}
	return out
}

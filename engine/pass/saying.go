// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// Conditions is what is known in a pass when its handlers have run. All is required.
type Conditions struct {
	// Object is as the pass has read it, Current and Look as handlers have left it.
	Object, Current *unstructured.Unstructured
	Look            *book.Look
	// Wanted is what handlers want of the object, with what is said for them.
	Wanted *dsl.Patch
	// Readers are the resource's handlers, Jobs those that had something to do.
	Readers []book.Reader
	Jobs    Jobs
	Ledger  *book.Ledger
	Memory  *Memory
	// Sees asks a handler's filters for a cause.
	Sees func(book.Reader, dsl.Cause) filter.Answer
}

// Failing asks for the operator's condition that says which handlers fail, or for its end.
func (p Conditions) Failing(operator string, marks *patch.Marks) {
	said := SaidOf(p.Object, operator)
	if said.Foreign() {
		return
	}
	handlers := make([]FailingHandler, 0, len(p.Readers))
	for _, r := range p.Readers {
		if !p.tellsItself(r) {
			handlers = append(handlers, p.standingOf(r, slices.Contains(said.Named, r.ID)))
		}
	}
	set, mended, failing := said.Next(handlers, p.Memory.Owes)
	p.Memory.Owes = p.Memory.Owes && failing
	if marks.Condition = set; mended {
		marks.Mended = Failing
	}
}

// standingOf says how a handler fares. Filters of one that the condition names are asked again when this process has
// not heard of them.
func (p Conditions) standingOf(reader book.Reader, named bool) FailingHandler {
	h, r := reader.Handler, p.Jobs.Record(reader, p.Ledger.Entry(reader))
	out := FailingHandler{ID: h.ID, Undecided: !r.Done && r.Attempts > 0}
	if j := p.Jobs.Of(reader); j != nil {
		out.Ran = j.Ran
	}
	switch {
	case r.Failed:
		out.Reason, out.Message = Failed, r.Message
	case Fails(r):
		out.Reason, out.Message = Retried, r.Message
	default:
		if named && h.When != nil && p.Memory.Filters.Of(h) == "" {
			p.Sees(reader, AskFor(h))
		}
		if text := p.Memory.Filters.Of(h); text != "" {
			out.Reason, out.Message = FilterFailed, text
		}
	}
	return out
}

// tellsItself reports whether a handler has a condition of its own in which it says that it fails.
func (p Conditions) tellsItself(r book.Reader) bool {
	j := p.Jobs.Of(r)
	return j != nil && j.Offers || slices.ContainsFunc(r.Needs, func(n dsl.Need) bool { return n.Offered })
}

// Restate states anew what handlers said of an earlier generation, where nothing that they look at has
// changed since: they need not run, and what they said is true of this one. A condition of an earlier
// generation is out of date by Kubernetes' conventions.
func (p Conditions) Restate(into *dsl.Patch) {
	for _, c := range EarlierConditions(p.Object) {
		said := slices.ContainsFunc(into.Conditions, func(now metav1.Condition) bool { return now.Type == c.Type })
		if !said && p.holdsOn(c.Type) {
			into.SetCondition(c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

// holdsOn reports whether a condition is that of a handler which sees the object and rests. It is not where
// another one that sets it is about to say otherwise, or has failed.
func (p Conditions) holdsOn(kind string) bool {
	holds := false
	for _, r := range p.Readers {
		if !slices.Contains(r.Conditions, kind) || !p.Sees(r, AskFor(r.Handler)).Holds {
			continue
		}
		e := p.Ledger.Entry(r)
		if p.Jobs.Of(r) != nil || e.Lost != "" {
			return false
		}
		holds = holds || r.Steady && !e.Met && e.Seen == p.Look.Digest(r.View)
	}
	return holds
}

// Keeps reports whether a condition is not to be retired: a handler is known to set it, or the engine does, or it was looked at before.
func (p Conditions) Keeps(kind string) bool {
	sets := func(r book.Reader) bool { return slices.Contains(r.Conditions, kind) }
	return kind == Failing || slices.Contains(p.Memory.Settled, kind) || slices.ContainsFunc(p.Readers, sets)
}

// ConditionOf returns a condition of an object, nil where there is none of the type. It is only read.
func ConditionOf(o *unstructured.Unstructured, kind string) map[string]any {
	for _, c := range ConditionsOf(o) {
		if c["type"] == kind {
			return c
		}
	}
	return nil
}

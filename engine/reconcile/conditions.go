// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// ownConditions sets the conditions HandlersFailing and Paused in the marks, or has them removed: no reconcile runs while the object is paused.
func (p *run) ownConditions(st State, marks *patch.Marks) {
	p.failing(st, marks)
	if conditions.IsOwn(p.Object, conditions.Paused, p.Rules.Names) && !sets(st.Explicit, conditions.Paused) {
		marks.RemoveConditions = append(marks.RemoveConditions, conditions.Paused)
	}
}

// failing sets the condition HandlersFailing in the marks, or has it removed.
func (p *run) failing(st State, marks *patch.Marks) {
	before := conditions.FailuresOf(p.Object, p.Rules.Names...)
	if before.Foreign() {
		return
	}
	handlers := make([]conditions.Handler, 0, len(p.Rules.Readers))
	for _, r := range p.Rules.Readers {
		if !offersCondition(st, r) {
			handlers = append(handlers, p.handlerState(st, r, slices.Contains(before.Named, r.ID)))
		}
	}
	for _, d := range p.Rules.Daemons {
		if text := p.memory.Filters.Of(d.Handler); text != "" {
			handlers = append(handlers, conditions.Handler{ID: d.ID, Reason: conditions.FilterFailed, Message: text})
		}
	}
	set, mended, failing := before.Next(handlers, p.memory.Owes)
	p.memory.Owes = p.memory.Owes && failing
	if marks.Conditions = append(marks.Conditions, conditions.List(set)...); mended {
		marks.RemoveConditions = append(marks.RemoveConditions, conditions.HandlersFailing)
	}
}

// handlerState returns whether a handler fails. Named: the object's condition names it, so its filters are asked if this process has
// not asked them yet.
func (p *run) handlerState(st State, reader progress.Handler, named bool) conditions.Handler {
	h, r := reader.Handler, st.Attempts.Record(reader, p.progress.Entry(reader))
	out := conditions.Handler{ID: h.ID, Undecided: !r.Done && r.Attempts > 0}
	if j := st.Attempts.Of(reader); j != nil {
		out.Ran = j.Ran
	} else if st.isOutcomeMissing(reader) {
		out.Undecided = true
	}
	switch {
	case r.Failed:
		out.Reason, out.Message = conditions.HandlerFailed, r.Message
	case Fails(r):
		out.Reason, out.Message = conditions.HandlerFailing, r.Message
	default:
		if named && h.When != nil && p.memory.Filters.Of(h) == "" {
			p.askFilters(st.Draft, reader, askFor(h))
		}
		if text := p.memory.Filters.Of(h); text != "" {
			out.Reason, out.Message = conditions.FilterFailed, text
		}
	}
	return out
}

// offersCondition reports whether a handler has a condition of its own, in which it reports failures.
func offersCondition(st State, r progress.Handler) bool {
	j := st.Attempts.Of(r)
	return j != nil && j.Offers || slices.ContainsFunc(r.Needs, func(n dsl.Need) bool { return n.Offered })
}

// keepConditions asks for conditions that are still true of a new generation, and finds out whose condition Ready the object has.
func (p *run) keepConditions(ctx context.Context, st State) State {
	st = p.restate(st)
	if p.keepsReady() {
		st = p.ownReady(ctx, p.readPods(ctx, st))
	}
	return st
}

// restate repeats for this generation the conditions that handlers set for an earlier one, if nothing that they look at has changed
// since: they need not run, and their conditions are true of this generation, too. A condition of an earlier generation is out of
// date by Kubernetes' conventions. Without a subresource, each write of the status would be another generation.
func (p *run) restate(st State) State {
	if p.Deletion != "" || !p.Own.Resource().Status {
		return st
	}
	for _, there := range conditions.All(p.Object) {
		if !conditions.IsEarlier(there, p.Object) {
			continue
		}
		if c := conditions.Typed(there); !sets(st.Patch.Conditions, c.Type) && p.holdsOn(st, c.Type) {
			st.Patch.SetCondition(c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return st
}

// sets reports whether a condition of a type is among some.
func sets(some []metav1.Condition, kind string) bool {
	return slices.ContainsFunc(some, func(c metav1.Condition) bool { return c.Type == kind })
}

// holdsOn reports whether the handler that sets a condition sees the object and has nothing to do. It is false if another handler that
// sets the condition runs, or has failed.
func (p *run) holdsOn(st State, kind string) bool {
	holds := false
	for _, r := range p.Rules.Readers {
		if !slices.Contains(r.Known.Conditions, kind) || !p.askFilters(st.Draft, r, askFor(r.Handler)).Holds {
			continue
		}
		e := p.progress.Entry(r)
		if st.Attempts.Of(r) != nil || e.FailedFor != "" {
			return false
		}
		if p.leaves(st, r, kind) {
			continue
		}
		holds = holds || r.Known.Steady && !e.AsFound && e.Handled == st.Look.Digest(r.View)
	}
	return holds
}

// leaves reports whether a handler leaves a condition as it is for the object. Then the condition of an earlier generation need not be
// true of this one.
func (p *run) leaves(st State, r progress.Handler, kind string) bool {
	if r.Known.Leaves == nil {
		return false
	}
	leaves := func(s *dsl.Subject) (bool, error) { return r.Known.Leaves(s, kind), nil }
	cause := askFor(r.Handler)
	out, err := attempt.Ask(leaves, p.subject(st.Draft, r, cause, progress.Record{}, p.family.Reader(), p.indexes.For(r.ID, cause)))
	return out || err != nil
}

// keepsCondition reports whether a condition must not be retired: the engine or a handler sets it, or an earlier reconcile
// has retired it already.
func (p *run) keepsCondition(kind string) bool {
	sets := func(r progress.Handler) bool { return slices.Contains(r.Known.Conditions, kind) }
	return kind == conditions.HandlersFailing || kind == conditions.Paused || slices.Contains(p.memory.Settled, kind) || slices.ContainsFunc(p.Rules.Readers, sets)
}

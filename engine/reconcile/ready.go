// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// keepsReady reports whether the engine keeps the condition Ready of the reconcile's object. Without a subresource each write of
// the status would make another generation to be ready for.
func (p *run) keepsReady() bool {
	return p.Rules.KeepsReady && p.Deletion == "" && p.Own.Resource().Status
}

// summary returns the condition Ready, and the one beside it, by what the reconcile has found; nil if they stay as they are.
func (p *run) summary(st State) []metav1.Condition {
	in := p.summaryInput(st)
	for _, r := range p.Rules.Readers {
		in.Handlers = append(in.Handlers, p.readiness(st, r))
	}
	all, err := p.family.Reader().Shared().All()
	in.Unread = err != nil
	for _, child := range all {
		in.Children = append(in.Children, p.childState(child))
	}
	return conditions.Summary(in)
}

// summaryInput returns what is known without the handlers and the children.
func (p *run) summaryInput(st State) conditions.Input {
	return conditions.Input{Object: p.Object, Was: p.memory.Ready, Set: st.Patch.Conditions}
}

// readiness returns what a handler has to do with the condition Ready.
func (p *run) readiness(st State, r progress.Handler) conditions.Handler {
	own, j := p.ownCondition(st, r), st.Attempts.Of(r)
	counts := r.Level() && (j != nil || p.askFilters(st.Draft, r, askFor(r.Handler)).Keeps()) || own != nil && own.Status == metav1.ConditionUnknown
	out := p.handlerState(st, r, false)
	out.Own, out.Counts = own, counts
	if j == nil || j.Record.Done || j.Cause.FromClock() || j.Cause == dsl.Event || !counts && !j.Cause.Lasting() {
		return out
	}
	if out.Open = true; j.Record.Waiting && out.Reason == "" {
		out.Waiting, out.Message = true, j.Record.Message
	}
	return out
}

// ownCondition returns the condition in which a handler reports; nil if the object has none.
func (p *run) ownCondition(st State, r progress.Handler) *metav1.Condition {
	if len(r.Known.Conditions) == 0 || !offersCondition(st, r) {
		return nil
	}
	kind := r.Known.Conditions[0]
	if at := slices.IndexFunc(st.Patch.Conditions, func(c metav1.Condition) bool { return c.Type == kind }); at >= 0 {
		return &st.Patch.Conditions[at]
	}
	if c := conditions.Of(st.Current, kind); c != nil {
		return new(conditions.Typed(c))
	}
	return nil
}

// childState returns whether a child is wanted and ready. Its handler may decide itself when it is ready.
func (p *run) childState(child dsl.ChildObject) conditions.Child {
	out := conditions.Child{Handler: child.Handler, Unwanted: child.Ownership == dsl.Unowned}
	if out.Unwanted {
		return out
	}
	judged := slices.ContainsFunc(p.Rules.Spec.Makes, func(m shape.NamedChild) bool { return m.Judged && m.Name == child.Name })
	if out.Ready = judged && child.Object.GetDeletionTimestamp() == nil; out.Ready {
		return out
	}
	is, err := dsl.ReadinessOf(child.Object)
	if err != nil {
		is = dsl.Readiness{Reason: "StatusUnknown", Stage: child.Object.GetKind() + " " + child.Object.GetName() + ": " + err.Error()}
	}
	out.Readiness = p.withPod(child.Object, is)
	return out
}

// ownReady finds out whose condition Ready the object has. It reads the object on the server once for each condition that this process
// does not know and that would change: caches do not have the field managers.
func (p *run) ownReady(ctx context.Context, st State) State {
	m, there := p.memory, conditions.Of(p.Object, dsl.Ready)
	if there == nil {
		m.Foreign = false
		return st
	}
	known := conditions.Digest(there)
	if m.Foreign || m.Ready == known {
		return st
	}
	if want := p.summary(st); len(want) == 0 || conditions.DigestOf(&want[0]) == known {
		if len(want) > 0 {
			m.Ready = known
		}
		return st
	}
	live, err := p.Writer.Live(ctx, p.Key, p.Object.GetUID())
	if err != nil {
		return st.noted(Note{Level: 1, Line: "field manager of the condition Ready could not be read", Values: []any{"error", err.Error()}})
	}
	manager := patch.Setter(live, p.Writer.Managers, dsl.Ready)
	if m.Foreign = manager != ""; !m.Foreign {
		m.Ready = known
		return st
	}
	return st.noted(Note{
		Line: "the condition Ready is left to the field manager that has set it", Warning: true, Once: true,
		Values: []any{"manager", manager, "object", p.Key.String()},
	})
}

// nextReady returns the condition Ready to write, and the one beside it; nil if they stay as they are.
func (p *run) nextReady(st State) (State, []metav1.Condition) {
	m := p.memory
	if m.Foreign || sets(st.Patch.Conditions, dsl.Ready) {
		return st, conditions.Withdrawn(p.summaryInput(st))
	}
	if st.hasMissingOutcome() {
		return st, nil
	}
	there := conditions.Of(p.Object, dsl.Ready)
	if p.isCurrent(there) && p.quiet(st) {
		return st, nil
	}
	want := p.summary(st)
	switch {
	case len(want) == 0:
	case there == nil:
		if !m.Seen && !p.Changes.Fresh && len(conditions.All(p.Object)) > 0 { // it was handled before
			st = st.noted(Note{Line: "objects get the condition Ready: a write for each", Once: true})
		}
	case m.Ready != conditions.Digest(there) && conditions.DigestOf(&want[0]) != conditions.Digest(there):
		return st, nil // its field manager could not be read
	}
	if len(want) > 0 && want[0].Status == metav1.ConditionFalse {
		st = p.noteUnready(st)
	}
	return st, want
}

// isCurrent reports whether this operator has set the condition Ready of the object for its present generation.
func (p *run) isCurrent(there map[string]any) bool {
	return there != nil && there["observedGeneration"] == p.Object.GetGeneration() && p.memory.Ready == conditions.Digest(there)
}

// quiet reports whether nothing has come up that can change the condition Ready. Pods of unready children change unseen. If handlers have
// filters, other handlers may see the object now.
func (p *run) quiet(st State) bool {
	filtered := func(r progress.Handler) bool {
		return r.Level() && (r.When != nil || len(r.Labels)+len(r.Annotations) > 0)
	}
	return p.memory.Seen && len(p.memory.Unready) == 0 && len(st.Attempts) == 0 && !p.Changes.Child && st.Patch.Empty() && !slices.ContainsFunc(p.Rules.Readers, filtered)
}

// readyMoved reports whether somebody else has changed the condition Ready since the reconcile read the object. The next reconcile
// finds out who.
func (p *run) readyMoved(live *unstructured.Unstructured) bool {
	return conditions.Digest(conditions.Of(live, dsl.Ready)) != conditions.Digest(conditions.Of(p.Object, dsl.Ready))
}

// healthUnready returns the health of an object whose handlers are done: it waits while the condition Ready of the engine
// is False, so that health and condition say the same.
func (p *run) healthUnready(st State, s ops.ObjectHealth) ops.ObjectHealth {
	o := st.written()
	if o == nil {
		o = p.Object
	}
	ready := conditions.Of(o, dsl.Ready)
	if s.Health != ops.Ready || !p.keepsReady() || p.memory.Foreign || conditions.Text(ready, "status") != string(metav1.ConditionFalse) {
		return s
	}
	reason := "waits to be ready: " + conditions.Text(ready, "message")
	return ops.ObjectHealth{Health: ops.Waits, Open: append(s.Open, ops.Open{Health: ops.Waits, Reason: reason, Logged: true})}
}

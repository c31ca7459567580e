// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// keepsReady reports whether the engine keeps the condition Ready of the reconcile's object. Without a subresource each write of
// the status would make another generation to be ready for.
func (p *run) keepsReady() bool {
	return p.Rules.KeepsReady && p.Deletion == "" && !p.Gone && !p.resourceWide() && p.Own.Resource().Status
}

// ownReady finds out whose condition Ready the object has. It is looked up on the server once for each that this process does not know
// and that is to be another one, as the cache does not have who has set it.
func (p *run) ownReady(ctx context.Context, st State) State {
	m, there := p.memory, ConditionOf(p.Object, dsl.Ready)
	if there == nil {
		m.Foreign = false
		return st
	}
	known := digestOf(there)
	if m.Foreign || m.Ready == known {
		return st
	}
	if want := p.conditions(st).Ready(); want == nil || digestOf(conditionMap(want)) == known {
		if want != nil {
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

// readiness is the condition Ready that the engine writes, nil where it is to stay as it is.
func (p *run) readiness(st State) (State, *metav1.Condition) {
	m := p.memory
	if m.Foreign || st.hasMissingOutcome() || slices.ContainsFunc(st.Patch.Conditions, func(c metav1.Condition) bool { return c.Type == dsl.Ready }) {
		return st, nil
	}
	there := ConditionOf(p.Object, dsl.Ready)
	current := there != nil && there["observedGeneration"] == p.Object.GetGeneration() && m.Ready == digestOf(there)
	if current && p.quiet(st) {
		return st, nil
	}
	want := p.conditions(st).Ready()
	switch {
	case want == nil:
	case there == nil:
		if !m.Seen && !p.Changes.Fresh && len(ConditionsOf(p.Object)) > 0 { // it was handled before
			st = st.noted(Note{Line: "objects get the condition Ready: a write for each", Once: true})
		}
	case m.Ready != digestOf(there) && digestOf(conditionMap(want)) != digestOf(there):
		return st, nil // its field manager could not be read
	}
	return st, want
}

// quiet reports whether nothing has come up that can change the condition Ready. Which handlers see the object may have changed where
// they have filters.
func (p *run) quiet(st State) bool {
	filtered := func(r progress.Handler) bool {
		return r.Level() && (r.When != nil || len(r.Labels)+len(r.Annotations) > 0)
	}
	return p.memory.Seen && len(st.Jobs) == 0 && !p.Changes.Child && st.Patch.Empty() && !slices.ContainsFunc(p.Rules.Readers, filtered)
}

// readyMoved reports whether somebody else has changed the condition Ready since the reconcile read the object. Whose it is, the next
// reconcile finds out.
func (p *run) readyMoved(live *unstructured.Unstructured) bool {
	return digestOf(ConditionOf(live, dsl.Ready)) != digestOf(ConditionOf(p.Object, dsl.Ready))
}

// besideReady is an object as the reconcile has written it, with the condition Ready as handlers have seen it: they have not seen the new
// one.
func besideReady(written, seen *unstructured.Unstructured) *unstructured.Unstructured {
	if ConditionOf(written, dsl.Ready) == nil {
		return written
	}
	was, list := ConditionOf(seen, dsl.Ready), []any{}
	for _, c := range ConditionsOf(written) {
		switch {
		case c["type"] != dsl.Ready:
			list = append(list, c)
		case was != nil:
			list = append(list, was)
		}
	}
	return &unstructured.Unstructured{Object: plain.Patched(written.Object, map[string]any{"status": map[string]any{"conditions": list}})}
}

// digestOf is a digest of what a condition says.
func digestOf(c map[string]any) uint64 {
	sum, err := plain.Hash([]any{c["status"], c["reason"], c["message"]})
	if err != nil || sum == 0 {
		return 1
	}
	return sum
}

// conditionMap is a condition as an object has it.
func conditionMap(c *metav1.Condition) map[string]any {
	return map[string]any{"status": string(c.Status), "reason": c.Reason, "message": c.Message}
}

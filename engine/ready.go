// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// keepsReady reports whether the engine keeps the condition Ready of the pass's object. Without a subresource each write of
// the status would make another generation to be ready for.
func (p *run) keepsReady() bool {
	return p.r.ready && p.deletion == "" && !p.gone && !p.resourceWide() && p.r.own.Resource().Status
}

// ownReady finds out whose condition Ready the object has. It is looked up on the server once for each that this process does not know
// and that is to be another one, as the cache does not have who has set it.
func (p *run) ownReady(ctx context.Context) {
	if !p.keepsReady() {
		return
	}
	m, there := p.memory, pass.ConditionOf(p.object, dsl.Ready)
	if there == nil {
		m.Foreign = false
		return
	}
	known := digestOf(there)
	if m.Foreign || m.Ready == known {
		return
	}
	if want := p.saying().Ready(p.children()); want == nil || digestOf(conditionMap(want)) == known {
		if want != nil {
			m.Ready = known
		}
		return
	}
	live, err := p.r.live(ctx, p.key, p.object.GetUID())
	if err != nil {
		p.log().V(1).Info("who has set the condition Ready cannot be told now", "error", err.Error())
		return
	}
	manager := patch.Setter(live, p.r.engine.managers(), dsl.Ready)
	if m.Foreign = manager != ""; !m.Foreign {
		m.Ready = known
		return
	}
	if !p.r.readyForeign.Swap(true) {
		p.log().Info("the condition Ready is left to the field manager that has set it", logmark.Warning, true,
			"manager", manager, "object", p.key.String())
	}
}

// readiness is the condition Ready that the engine writes, nil where it is to stay as it is.
func (p *run) readiness() *metav1.Condition {
	m := p.memory
	if !p.keepsReady() || m.Foreign || slices.ContainsFunc(p.Patch.Conditions, func(c metav1.Condition) bool { return c.Type == dsl.Ready }) {
		return nil
	}
	there := pass.ConditionOf(p.object, dsl.Ready)
	current := there != nil && there["observedGeneration"] == p.object.GetGeneration() && m.Ready == digestOf(there)
	if current && p.quiet() {
		return nil
	}
	want := p.saying().Ready(p.children())
	switch {
	case want == nil:
		return nil
	case there == nil:
		p.announceReady()
	case m.Ready != digestOf(there) && digestOf(conditionMap(want)) != digestOf(there):
		return nil // whose it is could not be told
	}
	return want
}

// quiet reports whether nothing has come up that can change the condition Ready. Which handlers see the object may have changed where
// they have filters.
func (p *run) quiet() bool {
	filtered := func(r book.Reader) bool {
		return r.Level() && (r.When != nil || len(r.Labels)+len(r.Annotations) > 0)
	}
	return p.memory.Seen && len(p.jobs) == 0 && !p.come.Child && p.Patch.Empty() && !slices.ContainsFunc(p.r.rules.Readers, filtered)
}

// readyMoved reports whether somebody else has changed the condition Ready since the pass read the object. Whose it is, the next
// pass finds out.
func (p *run) readyMoved(live *unstructured.Unstructured) bool {
	return digestOf(pass.ConditionOf(live, dsl.Ready)) != digestOf(pass.ConditionOf(p.object, dsl.Ready))
}

// announceReady says once that objects which were handled before get the condition.
func (p *run) announceReady() {
	found := !p.memory.Seen && !p.come.Fresh && len(pass.ConditionsOf(p.object)) > 0
	if found && !p.r.readyTold.Swap(true) {
		p.r.log.Info("objects get the condition Ready: a write for each")
	}
}

// children are those that the object needs to be ready.
func (p *run) children() pass.Children {
	return pass.Children{All: p.family.Reader().All, Judged: func(spec dsl.ChildSpec) bool {
		for _, made := range p.r.spec.Makes {
			if made.Judged && made.Name == spec.Name {
				return true
			}
		}
		return false
	}}
}

// besideReady is an object as the pass has written it, with the condition Ready as handlers saw it: they have not seen the new one.
func (p *run) besideReady(written *unstructured.Unstructured) *unstructured.Unstructured {
	if pass.ConditionOf(written, dsl.Ready) == nil {
		return written
	}
	was, list := pass.ConditionOf(p.Current, dsl.Ready), []any{}
	for _, c := range pass.ConditionsOf(written) {
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

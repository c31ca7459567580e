// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/book"
)

// restate states anew what handlers said of an earlier generation, where nothing that they look at has
// changed since: they need not run, and what they said is true of this one. A condition of an earlier
// generation is out of date by Kubernetes' conventions. Where there is no status subresource each write is
// another generation, so it would never come to an end.
func (p *pass) restate() {
	now := p.object.GetGeneration()
	if now == 0 || p.deletion != "" || !p.r.own.resource().Status {
		return
	}
	for _, r := range p.r.rules.readers {
		if len(r.Conditions) == 0 || !r.View.Only || !p.rests(r) {
			continue
		}
		for _, c := range p.conditions() {
			if slices.Contains(r.Conditions, c.Type) && !p.says(c.Type) && c.ObservedGeneration > 0 && c.ObservedGeneration < now {
				p.patch.SetCondition(c.Type, c.Status, c.Reason, c.Message)
			}
		}
	}
}

// says reports whether a handler of this pass has set the condition.
func (p *pass) says(kind string) bool {
	return slices.ContainsFunc(p.patch.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
}

// rests reports whether a handler has succeeded with what it looks at, and has nothing to do in this pass.
func (p *pass) rests(r book.Reader) bool {
	acts := slices.ContainsFunc(p.jobs, func(j *job) bool { return j.reader.Handler == r.Handler })
	e := p.entry(r)
	return !acts && e.Lost == "" && e.Seen == p.sight.Digest(r.View)
}

// conditions are the object's, as the pass found them.
func (p *pass) conditions() (out []metav1.Condition) {
	list, _, _ := unstructured.NestedSlice(p.object.Object, "status", "conditions")
	for _, item := range list {
		tree, _ := item.(map[string]any)
		generation, _ := tree["observedGeneration"].(int64)
		out = append(out, metav1.Condition{
			Type: textOf(tree, "type"), Status: metav1.ConditionStatus(textOf(tree, "status")),
			Reason: textOf(tree, "reason"), Message: textOf(tree, "message"), ObservedGeneration: generation,
		})
	}
	return out
}

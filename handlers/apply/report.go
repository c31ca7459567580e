// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// appliedWord is the type of the condition for all children, and the end of the types for the handlers.
const appliedWord = "Applied"

// report is a handler's part in the conditions on children.
type report struct {
	// own is the type of the condition for this handler's children; empty if the handler has none.
	own string
	// all are the conditions of all handlers that apply, in their order. A single handler has only Applied.
	all []applier
}

// applier is a handler that applies, with the type of its condition.
type applier struct{ id, condition string }

// reportOf finds the handlers of the resource that apply. If there are several, each has its own condition, its id
// followed by the word, and Applied summarizes them.
//
// A handler with forEach has no condition, because only the last entry would count. Neither has an action of a
// machine.
func reportOf(b actions.Build) report {
	var ids []string
	for _, s := range b.Siblings {
		if s.Action == action && !s.Each {
			ids = append(ids, s.ID)
		}
	}
	if len(b.Vars) == 0 && !b.Reported && !slices.Contains(ids, b.ID) {
		ids = append(ids, b.ID)
	}
	if len(ids) == 1 {
		out := report{all: []applier{{ids[0], appliedWord}}}
		if ids[0] == b.ID {
			out.own = appliedWord
		}
		return out
	}
	var out report
	for _, id := range ids {
		kind := camel(id) + appliedWord
		if slices.ContainsFunc(ids, func(other string) bool { return other != id && camel(other) == camel(id) }) {
			kind = id + appliedWord
		}
		out.all = append(out.all, applier{id, kind})
		if id == b.ID {
			out.own = kind
		}
	}
	return out
}

// types returns the types of the conditions that the handler sets.
func (r report) types() []string {
	switch r.own {
	case "":
		return nil
	case appliedWord:
		return []string{r.own}
	}
	return []string{r.own, appliedWord}
}

// set sets the condition for the handler's children and the one for all children of the object. For other
// handlers, it uses their last conditions. A handler without a condition does not count.
func (r report) set(s *dsl.Subject, says *dsl.Patch, c metav1.Condition) {
	conditions := conditionsOf(s.Object, says)
	r.retire(says, conditions)
	if r.own == "" {
		return
	}
	says.OfferCondition(r.own, c.Status, c.Reason, c.Message)
	if r.own == appliedWord {
		return
	}
	conditions[r.own] = c
	sum := r.sum(conditions)
	says.OfferCondition(appliedWord, sum.Status, sum.Reason, sum.Message)
}

// filtered reports that a filter keeps the handler from running. The filter is given as the line of a file.
func (p *plan) filtered(s *dsl.Subject, filter string, says *dsl.Patch) {
	if p.report.own == "" {
		p.report.retire(says, conditionsOf(s.Object, says))
		return
	}
	message := fmt.Sprintf("The when at %s is false, so the children stay as they are", filter)
	if last := p.last(s); last != "" {
		message += lastly + last
	}
	p.report.set(s, says, metav1.Condition{Status: metav1.ConditionUnknown, Reason: reasonFiltered, Message: message + "."})
}

// lastly separates the reason of a filtered handler from what it has applied last.
const lastly = "; "

// last returns the generation of the object that the handler has applied last, according to its condition. It is
// empty if the condition does not say.
func (p *plan) last(s *dsl.Subject) string {
	before, found := conditionsOf(s.Object, dsl.NewPatch())[p.report.own]
	switch {
	case found && before.Reason == reasonFiltered: // the condition is of this generation, and its text of an earlier one
		_, last, _ := strings.Cut(strings.TrimSuffix(before.Message, "."), lastly)
		return last
	case found && before.ObservedGeneration == 0:
		return ""
	case found && before.Status == metav1.ConditionTrue:
		return fmt.Sprintf("generation %d was applied last", before.ObservedGeneration)
	case found:
		return fmt.Sprintf("generation %d is not applied as a whole", before.ObservedGeneration)
	}
	all, err := dsl.SharedReader(s.Children).All()
	if err != nil || slices.ContainsFunc(all, func(c dsl.ChildObject) bool { return c.Handler == p.id }) {
		return ""
	}
	return "nothing is applied yet"
}

// conditionsOf returns the conditions of an object by type, with the new ones.
func conditionsOf(o *unstructured.Unstructured, says *dsl.Patch) map[string]metav1.Condition {
	out := map[string]metav1.Condition{}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		text := func(key string) string { value, _ := c[key].(string); return value }
		generation, _ := c["observedGeneration"].(int64)
		out[text("type")] = metav1.Condition{
			Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message"), ObservedGeneration: generation,
		}
	}
	for _, c := range says.Offered {
		out[c.Type] = c
	}
	return out
}

// sum summarizes the conditions of all handlers: True if all are, otherwise the gravest reason. Failures come
// before waits, and waits before filters.
func (r report) sum(conditions map[string]metav1.Condition) metav1.Condition {
	out := metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonAllApplied, Message: "All children are applied."}
	var texts []string
	for _, part := range r.all {
		c, is := conditions[part.condition]
		if !is || c.Status == metav1.ConditionTrue {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: %s", part.id, strings.TrimSuffix(c.Message, ".")))
		if gravity(c.Reason) > gravity(out.Reason) {
			out.Status, out.Reason = c.Status, c.Reason
		}
	}
	if len(texts) > 0 {
		out.Message = listed(texts, "; ") + "."
	}
	return out
}

// gravity returns the rank of a reason.
func gravity(reason string) int {
	if at := slices.Index([]string{reasonAllApplied, reasonFiltered, reasonWaiting}, reason); at >= 0 {
		return at
	}
	return 3
}

// retire removes the conditions of former handlers: those that do not apply any more, were renamed, or are the only
// one now. A condition is recognised by its type and by a reason of this action.
func (r report) retire(patch *dsl.Patch, conditions map[string]metav1.Condition) {
	for kind, c := range conditions {
		id, is := strings.CutSuffix(kind, appliedWord)
		known := slices.ContainsFunc(r.all, func(p applier) bool { return p.condition == kind })
		if is && (id != "" || len(r.all) == 0) && !known && slices.Contains(reasons(), c.Reason) {
			patch.RetireCondition(kind)
		}
	}
}

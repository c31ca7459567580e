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

// appliedWord is the type of the condition that tells of all children, and ends those that tell of one handler's.
const appliedWord = "Applied"

// report is a handler's part in the conditions that tell of children.
type report struct {
	// own is the type of the condition that tells of this handler's children, empty where somebody else tells of it.
	own string
	// all are those of the handlers that apply, in their order, this one among them; of a single one it is Applied.
	all []teller
}

// teller is one handler's.
type teller struct{ id, condition string }

// reportOf finds out which handlers of the resource apply. Of several each has a condition of its own, its id before
// the word, and Applied sums them up.
func reportOf(b actions.Build) report {
	if b.Told {
		return report{}
	}
	var ids []string
	for _, s := range b.Siblings {
		if s.Action == action {
			ids = append(ids, s.ID)
		}
	}
	if !slices.Contains(ids, b.ID) {
		ids = append(ids, b.ID)
	}
	if len(ids) == 1 {
		return report{own: appliedWord, all: []teller{{b.ID, appliedWord}}}
	}
	var out report
	for _, id := range ids {
		kind := camel(id) + appliedWord
		if slices.ContainsFunc(ids, func(other string) bool { return other != id && camel(other) == camel(id) }) {
			kind = id + appliedWord
		}
		out.all = append(out.all, teller{id, kind})
		if id == b.ID {
			out.own = kind
		}
	}
	return out
}

// types are the types of the conditions that the handler sets.
func (r report) types() []string {
	switch r.own {
	case "":
		return nil
	case appliedWord:
		return []string{r.own}
	}
	return []string{r.own, appliedWord}
}

// tell reports on the handler's children, and on all of the object's: on those of other handlers it tells what these
// have told last. A handler that has not told anything, since it does not see the object, does not count.
func (p *pass) tell(status metav1.ConditionStatus, reason, message string) {
	if p.report.own == "" {
		return
	}
	told := p.told()
	p.report.retire(p.r.Patch, told)
	p.r.Patch.OfferCondition(p.report.own, status, reason, message)
	if p.report.own == appliedWord {
		return
	}
	told[p.report.own] = metav1.Condition{Status: status, Reason: reason, Message: message}
	sum := p.report.sum(told)
	p.r.Patch.OfferCondition(appliedWord, sum.Status, sum.Reason, sum.Message)
}

// told are the conditions of the object, by their types.
func (p *pass) told() map[string]metav1.Condition {
	out := map[string]metav1.Condition{}
	list, _, _ := unstructured.NestedSlice(p.r.Object.Object, "status", "conditions")
	for _, item := range list {
		c, _ := item.(map[string]any)
		text := func(key string) string { value, _ := c[key].(string); return value }
		out[text("type")] = metav1.Condition{Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
	}
	return out
}

// sum is what the conditions of all handlers come to: True when all are, otherwise the gravest reason, what has failed
// before what is waited for.
func (r report) sum(told map[string]metav1.Condition) metav1.Condition {
	out := metav1.Condition{Status: metav1.ConditionTrue, Reason: reasonAllApplied, Message: "All children are applied."}
	var texts []string
	for _, part := range r.all {
		c, is := told[part.condition]
		if !is || c.Status == metav1.ConditionTrue {
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: %s", part.id, strings.TrimSuffix(c.Message, ".")))
		if out.Reason == reasonAllApplied || out.Reason == reasonWaiting {
			out.Reason = c.Reason
		}
	}
	if len(texts) > 0 {
		out.Status, out.Message = metav1.ConditionFalse, listed(texts, "; ")+"."
	}
	return out
}

// retire takes away the conditions of handlers that there were: which apply no more, have other ids now, or are alone.
// What looks like one must have a reason that this action gives, too.
func (r report) retire(patch *dsl.Patch, told map[string]metav1.Condition) {
	for kind, c := range told {
		id, is := strings.CutSuffix(kind, appliedWord)
		known := slices.ContainsFunc(r.all, func(p teller) bool { return p.condition == kind })
		if is && id != "" && !known && slices.Contains(reasons(), c.Reason) {
			patch.RetireCondition(kind)
		}
	}
}

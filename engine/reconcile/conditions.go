// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// conditions is what is known in a reconcile when its handlers have run.
type conditions struct {
	*run
	State
}

// Own asks for the conditions of the engine's own, or for their end: the object is not paused in a reconcile.
func (p conditions) Own(marks *patch.Marks) {
	p.failing(marks)
	name, _ := cutName(ConditionText(ConditionOf(p.Object, PausedCondition), "message"), p.Rules.Names)
	if name != "" && !slices.ContainsFunc(p.Explicit, func(c metav1.Condition) bool { return c.Type == PausedCondition }) {
		marks.Mended = append(marks.Mended, PausedCondition)
	}
}

// failing asks for the condition that says which handlers fail, or for its end.
func (p conditions) failing(marks *patch.Marks) {
	said := saidOf(p.Object, p.Rules.Names...)
	if said.Foreign() {
		return
	}
	handlers := make([]FailingHandler, 0, len(p.Rules.Readers))
	for _, r := range p.Rules.Readers {
		if !p.saysItself(r) {
			handlers = append(handlers, p.standingOf(r, slices.Contains(said.Named, r.ID)))
		}
	}
	for _, d := range p.Rules.Daemons {
		if text := p.memory.Filters.Of(d.Handler); text != "" {
			handlers = append(handlers, FailingHandler{ID: d.ID, Reason: FilterFailed, Message: text})
		}
	}
	set, mended, failing := said.Next(handlers, p.memory.Owes)
	p.memory.Owes = p.memory.Owes && failing
	if marks.Condition = set; mended {
		marks.Mended = append(marks.Mended, Failing)
	}
}

// standingOf says how a handler fares. Filters of one that the condition names are asked again when this process has
// not heard of them.
func (p conditions) standingOf(reader progress.Handler, named bool) FailingHandler {
	h, r := reader.Handler, p.Jobs.Record(reader, p.ledger.Entry(reader))
	out := FailingHandler{ID: h.ID, Undecided: !r.Done && r.Attempts > 0}
	if j := p.Jobs.Of(reader); j != nil {
		out.Ran = j.Ran
	} else if p.isOutcomeMissing(reader) {
		out.Undecided = true
	}
	switch {
	case r.Failed:
		out.Reason, out.Message = Failed, r.Message
	case Fails(r):
		out.Reason, out.Message = Retried, r.Message
	default:
		if named && h.When != nil && p.memory.Filters.Of(h) == "" {
			p.askFilters(p.Draft, reader, askFor(h))
		}
		if text := p.memory.Filters.Of(h); text != "" {
			out.Reason, out.Message = FilterFailed, text
		}
	}
	return out
}

// saysItself reports whether a handler has a condition of its own in which it says that it fails.
func (p conditions) saysItself(r progress.Handler) bool {
	j := p.Jobs.Of(r)
	return j != nil && j.Offers || slices.ContainsFunc(r.Needs, func(n dsl.Need) bool { return n.Offered })
}

// Restate repeats for this generation the conditions that handlers set for an earlier one, where nothing that they look at has
// changed since: they need not run, and their conditions are true of this generation, too. A condition of an earlier
// generation is out of date by Kubernetes' conventions.
func (p conditions) Restate(into *dsl.Patch) {
	for _, c := range earlierConditions(p.Object) {
		said := slices.ContainsFunc(into.Conditions, func(now metav1.Condition) bool { return now.Type == c.Type })
		if !said && p.holdsOn(c.Type) {
			into.SetCondition(c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

// holdsOn reports whether a condition is that of a handler which sees the object and rests. It is not where
// another one that sets it is about to say otherwise, or has failed.
func (p conditions) holdsOn(kind string) bool {
	holds := false
	for _, r := range p.Rules.Readers {
		if !slices.Contains(r.Known.Conditions, kind) || !p.askFilters(p.Draft, r, askFor(r.Handler)).Holds {
			continue
		}
		e := p.ledger.Entry(r)
		if p.Jobs.Of(r) != nil || e.FailedFor != "" {
			return false
		}
		if p.leaves(r, kind) {
			continue
		}
		holds = holds || r.Known.Steady && !e.AsFound && e.Handled == p.Look.Digest(r.View)
	}
	return holds
}

// leaves reports whether a handler leaves a condition as it is for the object. What it said of an earlier generation is not true of
// this one then.
func (p conditions) leaves(r progress.Handler, kind string) bool {
	if r.Known.Leaves == nil {
		return false
	}
	leaves := func(s *dsl.Subject) (bool, error) { return r.Known.Leaves(s, kind), nil }
	cause := askFor(r.Handler)
	out, err := attempt.Ask(leaves, p.subject(p.Draft, r, cause, progress.Record{}, p.family.Reader(), p.indexes.For(r.ID, cause)))
	return out || err != nil
}

// keepsCondition reports whether a condition is not to be retired: a handler is known to set it, or the engine does, or it was looked at before.
func (p *run) keepsCondition(kind string) bool {
	sets := func(r progress.Handler) bool { return slices.Contains(r.Known.Conditions, kind) }
	return kind == Failing || kind == PausedCondition || slices.Contains(p.memory.Settled, kind) || slices.ContainsFunc(p.Rules.Readers, sets)
}

// ConditionOf returns an object's condition of a type, nil where it has no such condition. It is only read.
func ConditionOf(o *unstructured.Unstructured, kind string) map[string]any {
	for _, c := range ConditionsOf(o) {
		if c["type"] == kind {
			return c
		}
	}
	return nil
}

// keepConditions asks for conditions that are still true of a new generation, and finds out whose condition Ready the object has.
func (p *run) keepConditions(ctx context.Context, st State) State {
	st = p.restate(st)
	if p.keepsReady() {
		st = p.ownReady(ctx, st)
	}
	return st
}

// restate asks for conditions that are still true of a new generation.
func (p *run) restate(st State) State {
	if p.Deletion == "" && p.Own.Resource().Status { // without a subresource, each write would be another generation
		p.conditions(st).Restate(st.Patch)
	}
	return st
}

// conditions is what the reconcile knows of what is to be said in conditions.
func (p *run) conditions(st State) conditions { return conditions{p, st} }

// ConditionsOf are an object's conditions. They are only read.
func ConditionsOf(o *unstructured.Unstructured) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "conditions")
	return plain.Maps(list)
}

// earlierConditions are an object's conditions that were set for an earlier generation of it.
func earlierConditions(o *unstructured.Unstructured) (out []metav1.Condition) {
	for _, c := range ConditionsOf(o) {
		if seen, is := c["observedGeneration"].(int64); is && seen > 0 && seen < o.GetGeneration() {
			out = append(out, metav1.Condition{
				Type: ConditionText(c, "type"), Status: metav1.ConditionStatus(ConditionText(c, "status")), Reason: ConditionText(c, "reason"), Message: ConditionText(c, "message"),
			})
		}
	}
	return out
}

// ConditionText is a text in a condition, empty where the key is absent.
func ConditionText(condition map[string]any, key string) string {
	text, _ := condition[key].(string)
	return text
}

// Failing is the type of the condition that says which handlers fail.
const Failing = "HandlersFailing"

// The reasons of that condition, the gravest first.
const (
	// Failed: a handler has failed for good.
	Failed = "HandlerFailed"
	// Retried: a handler fails, and is tried again.
	Retried = "HandlerFailing"
	// FilterFailed: a filter failed, so it is not known whether its handler sees the object.
	FilterFailed = "FilterFailed"
)

// FailingHandler is how one handler of an object fares, as far as it says so by no condition of its own.
type FailingHandler struct {
	ID string
	// Reason is why it fails, empty when it does not; Message is in what words.
	Reason, Message string
	// Ran: it has run in this reconcile. The condition names one that did not since the reconcile in which it ran.
	Ran bool
	// Undecided: it is about to be tried again; the outcome shows whether it is mended.
	Undecided bool
}

// Said is what an object's condition says of failing handlers.
type Said struct {
	// Named are the handlers that it names.
	Named []string

	there            map[string]any
	operator, reason string
	message          string
	foreign          bool
}

// saidOf reads the condition that an operator has left on an object, under its name or an earlier one: the names, its own first.
func saidOf(o *unstructured.Unstructured, names ...string) Said {
	s := Said{operator: names[0]}
	for _, c := range ConditionsOf(o) {
		if c["type"] == Failing {
			s.there = c
		}
	}
	if s.there == nil {
		return s
	}
	var name string
	name, s.message = cutName(ConditionText(s.there, "message"), names)
	s.foreign = s.there["status"] != string(metav1.ConditionTrue) || name == ""
	s.reason = ConditionText(s.there, "reason")
	if names, _, found := strings.Cut(s.message, ": "); found {
		s.Named = strings.Split(names, ", ")
	}
	if name != s.operator {
		s.message = "" // it is said again, under the new name
	}
	return s
}

// sayAs is how an operator begins what it says in conditions.
func sayAs(operator string) string { return "Operator " + operator + ": " }

// cutName cuts that off what one of these operators says. The name is empty where none of them says it.
func cutName(message string, names []string) (name, rest string) {
	for _, name := range names {
		if rest, is := strings.CutPrefix(message, sayAs(name)); is {
			return name, rest
		}
	}
	return "", message
}

// Foreign reports whether the condition is another controller's. It is left alone then.
func (s Said) Foreign() bool { return s.foreign }

// Next returns what the condition is to say of the handlers, all of the object's that say so by no condition of their
// own: another condition, or that it is to go; neither when it is right. It changes when another set of handlers fails
// than before, not for each attempt: attempts would cost requests. Owed: it could not be written before, so handlers that
// did not run now count, too. Failing reports whether any handler fails.
func (s Said) Next(handlers []FailingHandler, owed bool) (set *metav1.Condition, mended, failing bool) {
	t := s.tally(handlers, owed)
	failing = len(t.names) > 0
	who := strings.Join(t.names, ", ") + ": "
	switch {
	case t.open && !t.news:
		// What is said holds until it is known better.
	case failing && (s.reason != t.reason || !strings.HasPrefix(s.message, who)):
		set = &metav1.Condition{Type: Failing, Status: metav1.ConditionTrue, Reason: t.reason, Message: sayAs(s.operator) + who + t.message}
	case !failing && s.there != nil:
		mended = true
	}
	return set, mended, failing
}

// tally is what there is to say. Reason is the gravest one, message that of the first handler that is known to fail.
type tally struct {
	names           []string
	reason, message string
	// open: whether a handler that the condition names is mended is not known yet; news: it does not name one that
	// fails.
	open, news bool
}

func (s Said) tally(handlers []FailingHandler, owed bool) (t tally) {
	for _, h := range handlers {
		known := slices.Contains(s.Named, h.ID)
		switch {
		case h.Reason != "" && (known || h.Reason == FilterFailed || h.Ran || owed):
			t.names, t.news = append(t.names, h.ID), t.news || !known
			t.reason, t.message = graver(t.reason, h.Reason), cmp.Or(t.message, h.Message)
		case known && h.Undecided:
			t.names, t.open = append(t.names, h.ID), true
		}
	}
	return t
}

// graver is the reason that says more.
func graver(a, b string) string {
	for _, reason := range []string{Failed, Retried, FilterFailed} {
		if a == reason || b == reason {
			return reason
		}
	}
	return ""
}

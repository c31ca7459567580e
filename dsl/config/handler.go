// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// handler adds a handler to the resource.
func (w *watched) handler(at path, h *handler) {
	causes := h.Causes
	if !w.Has(at.Key("causes")) && !h.given() {
		causes = []dsl.Cause{dsl.Reconcile}
	}
	h.level = (&dsl.Handler{Causes: dsl.ExpandCauses(causes)}).Level()
	w.deletion(at, h, causes)
	when, asks, back := w.filters(at, h)
	out, built := w.built(at, h)
	out.Causes = append(slices.Clone(causes), out.Causes...)
	out.Labels, out.Annotations, out.When = h.Labels, h.Annotations, when
	if len(h.Field) > 0 {
		out.Fields = []dsl.Path{h.Field}
	}
	out.After = h.After
	out.NoFinalizer, out.Release = h.noFinalizer(), h.OnFailure == release
	out.NoOld = built.NoOld && !back || h.Old != nil && !*h.Old
	out.Brings, out.Sets, out.Conditions, out.Reads = built.Brings, built.Sets, built.Conditions, built.Reads.And(asks)
	added := w.add(at, out)
	added.Steady = steady(added, built)
}

// steady reports whether the conditions that a handler sets follow from what it looks at.
func steady(h *dsl.Handler, built actions.Built) bool {
	reads := slices.DeleteFunc(slices.Clone(built.Reads.Paths), func(read dsl.Path) bool {
		return slices.ContainsFunc(h.Sets, func(set dsl.Path) bool { return slices.Equal(set, read) })
	})
	return len(h.Conditions) > 0 && h.Woken() && !h.Reads.Passing && h.View().Holds(reads)
}

// deletion checks fields that are for delete handlers alone, whatever their values: who writes a default relies on it.
func (w *watched) deletion(at path, h *handler, causes []dsl.Cause) {
	deletes := slices.Contains(causes, dsl.Delete)
	for _, name := range []string{"finalizer", "onFailure"} {
		if w.Has(at.Key(name)) && !deletes && !w.Faulty(at.Key("causes")) {
			w.FaultKey(at.Key(name), "is only for handlers with cause delete")
		}
	}
	if policy := at.Key("onFailure"); w.Has(policy) && deletes && h.noFinalizer() {
		w.FaultKey(policy, "says nothing with finalizer: false, which holds no object")
	}
}

// scheduled adds a handler that runs for the resource as a whole.
func (w *watched) scheduled(at path, h *handler) {
	h.whole = true
	out, _ := w.built(at, h)
	out.ResourceWide, out.Causes = true, []dsl.Cause{dsl.Timer}
	w.add(at, out)
}

// built returns what all handlers have, and what the action made of its configuration. Of one at fault nothing is
// made, but that it is there.
func (w *watched) built(at path, h *handler) (dsl.Handler, actions.Built) {
	built := w.action(at, h)
	if built == nil {
		w.refused = true
		built = &actions.Built{Func: func(context.Context, *dsl.Request) error { return nil }}
	}
	out := dsl.Handler{ID: h.ID, Func: built.Func, Action: described(h), Timeout: h.Timeout, Retries: dsl.Unlimited}
	if h.Retries != nil {
		out.Retries = *h.Retries
	}
	if h.Backoff != nil {
		out.Backoff = dsl.Backoff(*h.Backoff)
	}
	if t := h.timing; t != (timing{}) {
		out.Timing = &dsl.Timing{Every: t.Every, Cron: t.Cron, TimeZone: t.TimeZone, Idle: t.Idle, Jitter: t.Jitter}
	}
	if h.given() {
		out.Causes = []dsl.Cause{dsl.Timer}
	}
	out.Needs, out.Declared = w.needs(at.Key("needs"), h, built)
	return out, *built
}

// add adds a handler that stands at a place.
func (w *watched) add(at path, h dsl.Handler) *dsl.Handler {
	added := w.out.Add(h)
	w.loader.places[added] = place{w.part, at}
	return added
}

// noFinalizer reports whether no deletion waits for the handler.
func (h *handler) noFinalizer() bool { return h.Finalizer != nil && !*h.Finalizer }

// filters are what keeps the handler from seeing an object, what they read of it, and whether they look back.
func (w *watched) filters(at path, h *handler) (when dsl.Predicate, reads dsl.Reads, back bool) {
	w.known(at.Key("field"), h.Field)
	reads.Only = true
	for _, m := range h.Labels {
		w.labelKey(at.Key("labels").Key(m.Key), m.Key)
		w.labelValue(at.Key("labels").Key(m.Key), m.Value)
		reads.Paths = append(reads.Paths, dsl.Path{"metadata", "labels", m.Key})
	}
	for _, m := range h.Annotations {
		w.labelKey(at.Key("annotations").Key(m.Key), strings.ToLower(m.Key)) // as the API server does
		reads.Paths = append(reads.Paths, dsl.Path{"metadata", "annotations", m.Key})
	}
	program := w.when(at.Key("when"), h)
	if program == nil {
		return nil, reads, false
	}
	return program.Predicate("when", h.With), reads.And(program.Reads()), program.Uses(expr.Old) || program.Uses(expr.Diff)
}

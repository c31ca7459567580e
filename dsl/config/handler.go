// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

var handlerID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// handler adds a handler to the resource, unless something that it cannot do without is at fault.
func (w *watched) handler(at path, h *handler) {
	w.id(at.Key("id"), h.ID)
	causes := w.causes(at.Key("causes"), h)
	h.level = (&dsl.Handler{Causes: dsl.ExpandCauses(causes)}).Level()
	filters, asks := w.filters(at, h)
	options := slices.Concat(
		w.timing(at, &h.timing),
		filters,
		w.attempts(at, h),
		w.deletion(at, h, causes),
		w.order(at.Key("after"), h),
	)
	if h.Old != nil && !*h.Old {
		options = append(options, dsl.NoOld())
	}
	built := w.action(at, h)
	if built == nil {
		return
	}
	options = append(options, w.needs(at.Key("needs"), h, built)...)
	options = slices.Concat(built.Options, options, []dsl.Option{dsl.Described(described(h)), dsl.Reading(built.Reads.And(asks)), setting(built)})
	w.out.On(causes, h.ID, built.Func, options...)
}

// setting tells what the handler sets of its object.
func setting(built *dsl.Built) dsl.Option {
	return func(h *dsl.Handler) {
		h.Sets, h.Conditions = built.Sets, built.Conditions
		reads := slices.DeleteFunc(slices.Clone(built.Reads.Paths), func(p dsl.Path) bool {
			return slices.ContainsFunc(built.Sets, func(of dsl.Path) bool { return slices.Equal(of, p) })
		})
		h.Steady = len(h.Conditions) > 0 && h.Woken() && !h.Reads.Passing && h.View().Holds(reads)
	}
}

func (w *watched) id(at path, id string) {
	if id == "" {
		return
	}
	if !handlerID.MatchString(id) {
		w.Fault(at, "want letters, digits, '-', '_' and '.', at most 63, found %s", form.Quoted(id))
	}
	if first, twice := w.ids[id]; twice {
		w.Fault(at, "the id is used twice (first at %s)", w.where(first))
		return
	}
	w.ids[id] = at
}

// causes checks the causes that are given. Without any a handler is level-triggered, unless it has
// a timer.
func (w *watched) causes(at path, h *handler) []dsl.Cause {
	if !w.Has(at) && !h.given() {
		return []dsl.Cause{dsl.Reconcile}
	}
	var out []dsl.Cause
	for _, c := range h.Causes {
		if c != "" {
			out = append(out, dsl.Cause(c))
		}
	}
	return out
}

// unmet reports causes that cannot come about, once it is known what handlers make.
func (w *watched) unmet() {
	for i, h := range w.form.Handlers {
		built := &dsl.Handler{}
		if h.given() {
			built.Timing = &dsl.Timing{}
		}
		for j, c := range h.Causes {
			if lack := dsl.Cause(c).Unmet(w.out, built); lack != nil && !w.Has(w.at.Key(lack.Field)) {
				w.Fault(w.at.Key("handlers").Index(i).Key("causes").Index(j), "%s", lack.Fault)
			}
		}
	}
}

func (w *watched) attempts(at path, h *handler) []dsl.Option {
	out := []dsl.Option{dsl.Timeout(h.Timeout)}
	if h.Retries != nil {
		out = append(out, dsl.Retries(*h.Retries))
	}
	if b := h.Backoff; b != nil {
		w.backoff(at.Key("backoff"), b)
		out = append(out, dsl.WithBackoff(b.Initial, b.Max))
	}
	return out
}

func (w *watched) backoff(at path, b *backoff) {
	initial, most := b.Initial, b.Max
	if initial == 0 {
		initial = dsl.DefaultBackoffInitial
	}
	if most == 0 {
		most = dsl.DefaultBackoffMax
	}
	if initial > most {
		w.Fault(at, "initial (%v) must not be more than max (%v)", initial, most)
	}
}

func (w *watched) deletion(at path, h *handler, causes []dsl.Cause) []dsl.Option {
	for _, name := range []string{"finalizer", "onFailure"} {
		if w.Has(at.Key(name)) && len(causes) > 0 && !slices.Contains(causes, dsl.Delete) {
			w.FaultKey(at.Key(name), "is only for handlers with cause delete")
		}
	}
	if !slices.Contains(causes, dsl.Delete) {
		return nil
	}
	var out []dsl.Option
	if h.Finalizer != nil && !*h.Finalizer {
		out = append(out, dsl.NoFinalizer())
		if w.Has(at.Key("onFailure")) {
			w.FaultKey(at.Key("onFailure"), "says nothing with finalizer: false, which holds no object")
		}
	}
	if h.OnFailure == release {
		out = append(out, dsl.Release())
	}
	return out
}

// order checks that what the handler comes after is declared before it.
func (w *watched) order(at path, h *handler) []dsl.Option {
	for i, id := range h.After {
		if earlier, found := w.ids[id]; id == "" || found && earlier != at.Parent().Key("id") {
			continue
		}
		var others []string
		later := false
		for _, other := range w.form.Handlers {
			later = later || other.ID == id && id != h.ID
			if _, earlier := w.ids[other.ID]; earlier && other.ID != h.ID {
				others = append(others, other.ID)
			}
		}
		switch {
		case id == h.ID:
			w.Fault(at.Index(i), "a handler cannot come after itself")
		case later:
			w.Fault(at.Index(i), "handler %s is declared later; handlers run in declared order", form.Quoted(id))
		default:
			w.Fault(at.Index(i), "%s", form.Unknown("handler", id, others))
		}
	}
	return []dsl.Option{dsl.After(h.After...)}
}

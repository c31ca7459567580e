// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

var handlerID = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// handler adds a handler to the resource, unless something that it cannot do without is at fault.
func (w *watched) handler(at path, h *handler) {
	w.id(at.key("id"), h.ID)
	causes := w.causes(at.key("causes"), h.Causes)
	options := slices.Concat(
		w.filters(at, h),
		w.attempts(at, h),
		w.deletion(at, h, causes),
		w.order(at.key("after"), h),
	)
	if h.Old != nil && !*h.Old {
		options = append(options, dsl.NoOld())
	}
	fn := w.action(at, h)
	if fn == nil {
		return
	}
	options = append(options, dsl.Described(described(h)))
	w.out.On(causes, h.ID, fn, options...)
}

func (w *watched) id(at path, id string) {
	if id == "" {
		return
	}
	if !handlerID.MatchString(id) {
		w.fault(at, "want letters, digits, '-', '_' and '.', at most 63, found %s", quoted(id))
	}
	if first, twice := w.ids[id]; twice {
		w.fault(at, "the id is used twice (first at %s)", w.where(first))
		return
	}
	w.ids[id] = at
}

func (w *watched) causes(at path, given []cause) []dsl.Cause {
	var out []dsl.Cause
	var names []string
	for i, c := range given {
		names = append(names, string(c))
		if c == "" {
			continue
		}
		out = append(out, dsl.Cause(c))
		if dsl.Cause(c) == dsl.Resync && !w.has(w.at.key("resync")) {
			w.fault(at.index(i), "the resource has no resync period")
		}
		if dsl.Cause(c) == dsl.Child && !w.has(w.at.key("owns")) {
			w.fault(at.index(i), "the resource owns nothing, so no child changes")
		}
	}
	w.twice(at, names)
	return out
}

// filters are what keeps the handler from seeing an object.
func (w *watched) filters(at path, h *handler) []dsl.Option {
	var out []dsl.Option
	if field := w.path(at.key("field"), h.Field); field != nil {
		w.visible(at.key("field"), field)
		out = append(out, dsl.Field(h.Field))
	}
	for _, m := range h.Labels {
		w.labelKey(at.key("labels").key(m.Key), m.Key)
		w.labelValue(at.key("labels").key(m.Key), m.Value)
	}
	for _, m := range h.Annotations {
		w.labelKey(at.key("annotations").key(m.Key), m.Key)
	}
	out = append(out, func(into *dsl.Handler) { into.Labels, into.Annotations = h.Labels, h.Annotations })
	if program := w.when(at.key("when"), h); program != nil {
		out = append(out, dsl.When(program.Predicate("when", h.With)))
	}
	return out
}

// visible checks that the cache holds the field.
func (w *watched) visible(at path, field dsl.Path) {
	if field[0] == "metadata" || field[0] == "apiVersion" || field[0] == "kind" {
		return
	}
	if w.out.Cache == dsl.CacheMetadata {
		w.fault(at, "cache metadata does not hold it")
	}
	covers := func(kept dsl.Path) bool { return kept.Covers(field) }
	if len(w.out.Keep) > 0 && !slices.ContainsFunc(w.out.Keep, covers) {
		w.fault(at, "keep leaves it out of the cache")
	}
}

// when compiles the handler's expression, nil when there is none or it is at fault.
func (w *watched) when(at path, h *handler) *expr.Program {
	if h.When == "" {
		return nil
	}
	program, err := w.loader.expression(h.When)
	if faulty, ok := errors.AsType[*expr.Error](err); ok {
		for _, issue := range faulty.Issues {
			w.faultWithin(at, issue.Line, issue.Column, issue.Message)
		}
		return nil
	}
	if err != nil {
		w.fault(at, "%v", err)
		return nil
	}
	for _, variable := range []string{expr.Old, expr.Diff} {
		if h.Old != nil && !*h.Old && program.Uses(variable) {
			w.fault(at, "%s is not known to a handler with old: false", variable)
		}
	}
	return program
}

// expression compiles; the compiler is made for the first expression.
func (l *loader) expression(text string) (*expr.Program, error) {
	if l.cel == nil {
		compiler, err := expr.New()
		if err != nil {
			return nil, err
		}
		l.cel = compiler
	}
	return l.cel.Compile(text)
}

func (w *watched) attempts(at path, h *handler) []dsl.Option {
	out := []dsl.Option{dsl.Timeout(h.Timeout)}
	if h.Retries != nil {
		out = append(out, dsl.Retries(*h.Retries))
	}
	if b := h.Backoff; b != nil {
		w.backoff(at.key("backoff"), b)
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
		w.fault(at, "initial (%v) must not be more than max (%v)", initial, most)
	}
}

func (w *watched) deletion(at path, h *handler, causes []dsl.Cause) []dsl.Option {
	for _, name := range []string{"finalizer", "onFailure"} {
		if w.has(at.key(name)) && len(causes) > 0 && !slices.Contains(causes, dsl.Delete) {
			w.faultKey(at.key(name), "is only for handlers with cause delete")
		}
	}
	if !slices.Contains(causes, dsl.Delete) {
		return nil
	}
	var out []dsl.Option
	if h.Finalizer != nil && !*h.Finalizer {
		out = append(out, dsl.NoFinalizer())
		if w.has(at.key("onFailure")) {
			w.faultKey(at.key("onFailure"), "says nothing with finalizer: false, which holds no object")
		}
	}
	if h.OnFailure == release {
		out = append(out, dsl.Release())
	}
	return out
}

// order checks that what the handler comes after is declared before it.
func (w *watched) order(at path, h *handler) []dsl.Option {
	w.twice(at, h.After)
	for i, id := range h.After {
		if earlier, found := w.ids[id]; id == "" || found && earlier != at.parent().key("id") {
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
			w.fault(at.index(i), "a handler cannot come after itself")
		case later:
			w.fault(at.index(i), "handler %s is declared later; handlers run in declared order", quoted(id))
		default:
			w.fault(at.index(i), "%s", unknown("handler", id, others))
		}
	}
	return []dsl.Option{dsl.After(h.After...)}
}

// action builds the handler's code, nil when it is at fault.
func (w *watched) action(at path, h *handler) dsl.Func {
	action, found := w.registry.LookupAction(h.action)
	if !found || h.config == nil || h.With == nil && w.has(at.key("with")) {
		return nil
	}
	build := dsl.Build{Registry: w.registry, Params: h.With, Resource: w.out.Name}
	fn, err := action.Build(build, h.config)
	for _, err := range flatten(err) {
		place := at.key(h.action)
		if faulty, ok := errors.AsType[*dsl.ConfigError](err); ok {
			place = w.step(at, faulty.Path)
		}
		w.fault(place, "%v", err)
	}
	if err == nil && fn == nil {
		w.fault(at.key(h.action), "the action made no handler")
	}
	return fn
}

// step follows the steps of an action's fault; those that are numbers may be indexes of a list.
func (w *watched) step(at path, steps []string) path {
	for _, step := range steps {
		if i, err := strconv.Atoi(step); err == nil && w.has(at.index(i)) {
			at = at.index(i)
			continue
		}
		at = at.key(step)
	}
	return at
}

// described says for people what a handler does.
func described(h *handler) string {
	if name, ok := h.config.(*string); ok {
		return fmt.Sprintf("%s: %s", h.action, *name)
	}
	return h.action
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
)

// steps is the key under which a handler has several actions.
const steps = "steps"

// step is one action of a handler that has several.
type step struct {
	Name string         `yaml:"name" doc:"What the step is called. By default its number. The children that apply makes in it belong to it by this name."`
	When form.Predicate `yaml:"when" doc:"A CEL expression that must be true, or the step is left out. Variables as in a handler's own; in a schedule params, now and objects."`
	With map[string]any `yaml:"with" doc:"The parameters of the function that the step calls."`

	doing
}

// ReadForm fills a step; see [handler.ReadForm].
func (s *step) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	return oneAction(d, p, n, s, "step", &s.doing)
}

// DescribeForm describes a step.
func (s *step) DescribeForm(of *form.Describer) *form.Schema {
	return withAction(of, reflect.TypeFor[step](), anyAction)
}

// name returns what the step is called.
func (s *step) name(i int) string {
	if s.Name != "" {
		return s.Name
	}
	return strconv.Itoa(i + 1)
}

// steps builds a handler of several actions, nil when one is at fault.
func (w *watched) steps(at path, h *handler) *actions.Built {
	// Needs is not nil: of steps of which each takes nothing it is known that they take nothing.
	out, looksBack, unnamed := &actions.Built{Needs: []dsl.Need{}, Makers: []string{}, Reads: dsl.Reads{Only: true}}, false, false
	var fns []dsl.Func
	seen := map[string]path{}
	for i := range h.Steps {
		s, place := &h.Steps[i], at.Key(steps).Index(i)
		name := s.name(i)
		if first, twice := seen[name]; twice {
			w.Fault(place.Key("name"), "the name is used twice (first at %s)", w.where(first))
		}
		seen[name] = place
		if fault := (&dsl.Handler{ID: name}).WrongID(); fault != "" {
			w.Fault(place.Key("name"), "%s", fault)
		}
		one := &handler{
			ID: h.ID + "." + name, With: s.With, Causes: h.Causes, Old: h.Old, Finalizer: h.Finalizer, whole: h.whole, level: h.level,
			partly: h.partial() || s.When != "", sure: slices.Clone(h.sure), doing: s.doing,
			entries: h.entries, vars: h.vars, item: h.item,
		}
		built := w.action(place, one)
		if built == nil {
			out = nil
			continue
		}
		fn, asks := w.onlyWhen(place.Key("when"), one, s, built.Func)
		if !slices.Contains(slices.Concat(h.Causes, built.Brings), dsl.Delete) {
			fn = notOnDelete(fn) // another step gives the handler that cause
		}
		fns = append(fns, fn)
		h.untold = h.untold || built.Needs == nil || anyKind(built)
		if out != nil {
			out.Needs = append(out.Needs, built.Needs...)
			if out.Makers = append(out.Makers, built.Makers...); built.Makers == nil {
				unnamed = true
			}
			out.Brings = append(out.Brings, built.Brings...)
			out.Sets = append(out.Sets, built.Sets...)
			out.Conditions = append(out.Conditions, built.Conditions...)
			out.Reads = out.Reads.And(built.Reads).And(asks)
			looksBack = looksBack || !asks.Only || !built.NoOld
		}
	}
	if out == nil {
		return nil
	}
	if unnamed {
		out.Makers = nil
	}
	out.NoOld, out.Func = !looksBack, dsl.Steps(fns...)
	return out
}

func notOnDelete(fn dsl.Func) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		if r.Cause == dsl.Delete {
			return nil
		}
		return fn(ctx, r)
	}
}

// onlyWhen makes a step, which is a handler of its own, depend on its expression, and returns what that reads.
func (w *watched) onlyWhen(at path, h *handler, s *step, fn dsl.Func) (only dsl.Func, reads dsl.Reads) {
	if s.When == "" {
		return fn, dsl.Reads{Only: true}
	}
	program := w.predicateFor(h, at, string(s.When))
	if program == nil {
		return fn, dsl.Reads{}
	}
	h.sure = append(h.sure, check.Sure(program)...)
	withdraws := !h.whole && !w.momentary(s.When, h.vars...)
	if withdraws && !slices.ContainsFunc(h.vars, program.Uses) {
		if w.only == nil {
			w.only = map[string]dsl.Predicate{}
		}
		w.only[h.ID] = program.Predicate("when", s.With)
	}
	return func(ctx context.Context, r *dsl.Request) error {
		if h.entries.leaves(r) {
			return fn(ctx, r)
		}
		holds, err := program.Bool(expr.Scope{Subject: &r.Subject, Params: s.With, Vars: objectsOf(&r.Subject)})
		if err != nil {
			return fmt.Errorf("evaluating when: %w", err)
		}
		switch {
		case !holds && h.entries != nil && withdraws:
			return h.entries.withdraw(ctx, r, h.ID)
		case !holds:
			return nil
		}
		return fn(ctx, r)
	}, program.Reads()
}

// objectsOf is the variable of schedules.
func objectsOf(s *dsl.Subject) map[string]any {
	list := make([]any, len(s.Objects))
	for i, o := range s.Objects {
		list[i] = o.Object
	}
	return map[string]any{objects: list}
}

// siblingsOf are all handlers of a resource; one with steps is as many as it has steps.
func siblingsOf(r *resource) (out []actions.Sibling) {
	for _, h := range slices.Concat(r.Handlers, r.Schedule) {
		if len(h.Steps) == 0 {
			out = append(out, actions.Sibling{ID: h.ID, Action: h.action, Each: h.ForEach.Value != nil})
		}
		for i, s := range h.Steps {
			out = append(out, actions.Sibling{ID: h.ID + "." + s.name(i), Action: s.action, Each: h.ForEach.Value != nil})
		}
	}
	return out
}

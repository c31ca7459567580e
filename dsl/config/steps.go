// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
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

// steps is the key of a handler with several actions.
const steps = "steps"

// step is one action of a handler with several.
type step struct {
	Name string         `yaml:"name" doc:"The name of the step, under which its progress and its children are kept. Default: its number, from 1 on."`
	When form.Predicate `yaml:"when" doc:"While it is false, the step is left out: its children stay as they are. Variables as in the handler's when; in a schedule params, now and objects. Absent: the step always runs."`
	With map[string]any `yaml:"with" doc:"The parameters of the Go function that the step calls."`

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

// name returns the name of the step.
func (s *step) name(i int) string {
	if s.Name != "" {
		return s.Name
	}
	return strconv.Itoa(i + 1)
}

// steps builds a handler with several actions; nil if one has a fault.
func (w *watched) steps(at path, h *making) *actions.Built {
	out, each := w.sequence(sequence{of: h, list: h.Steps, at: at.Key(steps).Index, named: h.step, seen: map[string]path{}})
	if out != nil {
		out.Func = dsl.Steps(codeOf(each)...)
	}
	return out
}

// codeOf returns the code of steps.
func codeOf(each []*actions.Built) (out []dsl.Func) {
	for _, built := range each {
		out = append(out, built.Func)
	}
	return out
}

// step returns the name of step i of a handler.
func (h *handler) step(i int) string { return h.Steps[i].name(i) }

// sequence is several steps that make one piece of a handler's code.
type sequence struct {
	of    *making
	list  []step
	at    func(i int) path
	named func(i int) string
	// seen are the names of the handler's steps so far, with their places.
	seen map[string]path
}

// sequence builds the steps of a sequence, and returns their joined properties without the code. The result is nil
// if a step has a fault.
func (w *watched) sequence(q sequence) (out *actions.Built, each []*actions.Built) {
	// Needs is not nil: if no step needs a right, the handler is known to need none.
	looksBack, unnamed, unaimed := false, false, false
	out = &actions.Built{Needs: []dsl.Need{}, Makers: []string{}, Patches: []string{}, Reads: dsl.KnownReads{Only: true, Complete: true}}
	for i := range q.list {
		built, asks := w.stepOf(q, i)
		if built == nil {
			out = nil
			continue
		}
		each = append(each, built)
		q.of.needsUnknown = q.of.needsUnknown || built.Needs == nil || anyKind(built)
		if out != nil {
			out.Needs = append(out.Needs, built.Needs...)
			if out.Makers = append(out.Makers, built.Makers...); built.Makers == nil {
				unnamed = true
			}
			out.Gated = append(out.Gated, built.Gated...)
			out.Patches, unaimed = append(out.Patches, built.Patches...), unaimed || built.Patches == nil
			out.Asks = append(out.Asks, built.Asks...)
			out.Brings = append(out.Brings, built.Brings...)
			out.Sets = append(out.Sets, built.Sets...)
			out.Conditions = append(out.Conditions, built.Conditions...)
			out.Reads = out.Reads.And(built.Reads).And(asks)
			looksBack = looksBack || !asks.Only || !built.NoOld
		}
	}
	if out == nil {
		return nil, nil
	}
	if unnamed {
		out.Makers = nil
	}
	if unaimed {
		out.Patches = nil
	}
	out.NoOld, out.Filtered, out.Leaves = !looksBack, filteredOf(each), leavesOf(each)
	return out, each
}

// filteredOf joins the functions Filtered of steps; nil if no step has one.
func filteredOf(each []*actions.Built) func(*dsl.Subject, string, *dsl.Patch) {
	each = slices.DeleteFunc(slices.Clone(each), func(b *actions.Built) bool { return b.Filtered == nil })
	if len(each) == 0 {
		return nil
	}
	return func(s *dsl.Subject, filter string, says *dsl.Patch) {
		for _, built := range each {
			built.Filtered(s, filter, says)
		}
	}
}

// leavesOf joins the functions Leaves of steps: a condition stays as it is if all steps that set it leave it.
func leavesOf(each []*actions.Built) func(*dsl.Subject, string) bool {
	if !slices.ContainsFunc(each, func(b *actions.Built) bool { return b.Leaves != nil }) {
		return nil
	}
	return func(s *dsl.Subject, condition string) bool {
		return !slices.ContainsFunc(each, func(b *actions.Built) bool {
			return slices.Contains(b.Conditions, condition) && (b.Leaves == nil || !b.Leaves(s, condition))
		})
	}
}

// stepOf builds step i of a sequence and returns what its own expression reads; nil if it has a fault.
func (w *watched) stepOf(q sequence, i int) (built *actions.Built, asks dsl.KnownReads) {
	s, place, name, h := &q.list[i], q.at(i), q.named(i), q.of
	if first, twice := q.seen[name]; twice {
		w.Fault(place.Key("name"), "the name is used twice (first at %s)", w.where(first))
	}
	q.seen[name] = place
	if fault := (&dsl.Handler{ID: name}).WrongID(); fault != "" {
		w.Fault(place.Key("name"), "%s", fault)
	}
	one := &making{
		handler: &handler{ID: h.ID + "." + name, With: s.With, Causes: h.Causes, Old: h.Old, Finalizer: h.Finalizer, doing: s.doing},
		kind:    h.kind, level: h.level, restores: h.restores, state: h.state, partly: h.partial() || s.When != "", sure: slices.Clone(h.sure),
		include: h.include, entries: h.entries, vars: h.vars, each: h.each, names: h.names, oneStep: true,
	}
	if built = w.action(place, one); built == nil {
		return nil, asks
	}
	step := actions.Step{Func: built.Func, Entries: h.entries}
	step.NotOnDelete = !slices.Contains(slices.Concat(h.Causes, built.Brings), dsl.Delete)
	asks = dsl.KnownReads{Only: true, Complete: true}
	if at := place.Key("when"); s.When != "" {
		built.Gated = built.Makers
		step.When, asks = w.stepWhen(at, one, s)
		if one.explainWhen != nil {
			built.Asks = slices.Concat([]actions.Ask{ask(one.explainWhen)}, built.Asks)
		}
		if filtered, line := built.Filtered, w.line(at); filtered != nil && h.level {
			step.Filtered = func(s *dsl.Subject, says *dsl.Patch) { filtered(s, line, says) }
		}
	}
	if step.When != nil || step.NotOnDelete {
		built.Func = w.composer(place).Step(step)
	}
	for i := range built.Asks {
		built.Asks[i] = built.Asks[i].Within("step " + name)
	}
	return built, asks
}

// stepWhen compiles the filter of a step, and returns what it reads. A faulty filter is nil.
func (w *watched) stepWhen(at path, h *making, s *step) (dsl.Predicate, dsl.KnownReads) {
	program := w.predicateFor(h, at, string(s.When))
	if program == nil {
		return nil, dsl.KnownReads{}
	}
	h.sure = append(h.sure, check.Sure(program)...)
	h.explainWhen = w.explains(at, "when", program, s.With, false)
	program = program.Observed("when", w.loader.registry.Branches(w.out.Name, h.ID))
	return func(of *dsl.Subject) (bool, error) {
		holds, err := program.Bool(expr.Scope{Subject: of, Params: s.With, Vars: objectsOf(of)})
		if err != nil {
			return false, fmt.Errorf("evaluating when: %w", err)
		}
		return holds, nil
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

// siblingsOf returns all handlers of a resource. A handler with steps counts once for each step.
func siblingsOf(r *resource) (out []actions.Sibling) {
	for _, h := range slices.Concat(r.Handlers, r.Schedule) {
		does, list := content(&h.doing, h.Steps)
		if len(list) == 0 {
			out = append(out, actions.Sibling{ID: h.ID, Action: does.action, Each: h.ForEach.Value != nil})
		}
		for i, s := range list {
			does, _ := content(&s.doing, nil)
			out = append(out, actions.Sibling{ID: h.ID + "." + s.name(i), Action: does.action, Each: h.ForEach.Value != nil})
		}
	}
	return out
}

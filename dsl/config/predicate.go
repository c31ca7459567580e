// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// when compiles the handler's expression when. A missing or faulty expression gives nil.
func (c *compiling) when(at path, h *making) *expr.Program {
	if h.When == "" {
		return nil
	}
	program := c.predicate(at, string(h.When), nil, nil)
	if program == nil {
		return nil
	}
	h.sure = append(h.sure, check.Sure(program)...)
	missing := without(h)
	for _, variable := range []string{expr.Old, expr.Diff, expr.Handlers} {
		if why, is := missing[variable]; is && program.Uses(variable) {
			c.Fault(at, "%s%s %s", program.Through(variable), variable, why)
		}
	}
	return program
}

// include checks the handler's includeWhen.
func (c *compiling) include(at path, h *making) {
	place, text := at.Key("includeWhen"), string(h.IncludeWhen)
	if text == "" {
		return
	}
	whole, list := content(&h.doing, h.Steps)
	doings := []*doing{whole}
	for i := range list {
		one, _ := content(&list[i].doing, nil)
		doings = append(doings, one)
	}
	if !slices.ContainsFunc(doings, func(d *doing) bool { return d.undone() && len(list) == 0 || c.includes(d) }) {
		c.FaultKey(place, "is for handlers that apply or patch: this one has nothing that could be wanted or not (when says whether to act)")
		return
	}
	if program := c.predicateFor(h, place, text); program != nil {
		h.sure, h.include = append(h.sure, check.Sure(program)...), &actions.Predicate{Program: program, Params: h.With}
		h.asks = append(h.asks, ask(c.explains(place, "includeWhen", program, h.With, false)))
	}
}

// includes reports whether an action uses includeWhen.
func (c *compiling) includes(d *doing) bool {
	action, found := c.loader.registry.LookupAction(d.action)
	return found && action.Includes
}

// variable is an additional variable of an expression.
type variable struct {
	name  string
	shape func(shape.Schemas) shape.Shape
}

// objects is the variable of schedules with all objects of the resource.
const objects = "objects"

// predicateFor is predicate for a handler, which may have no object.
func (c *compiling) predicateFor(h *making, at path, text string) *expr.Program {
	if !h.whole() {
		var variables []variable
		for _, name := range h.vars {
			variables = append(variables, variable{name, func(shape.Schemas) shape.Shape { return shape.Shape{Value: true} }})
		}
		return c.predicate(at, text, h, without(h), variables...)
	}
	all := func(s shape.Schemas) shape.Shape {
		return shape.Shape{Schema: s.Self.Schema, List: true, Kept: s.Self.Kept}
	}
	return c.predicate(at, text, h, without(h), variable{objects, all})
}

// predicate compiles an expression that is true or false; nil if it has a fault. It is checked again when schemas
// are known. The parameter without has the variables that do not exist here, as [shape.Schemas.Without]. A handler,
// if given, may add variables.
func (c *compiling) predicate(at path, text string, h *making, without map[string]string, variables ...variable) *expr.Program {
	var names []string
	for _, v := range variables {
		names = append(names, v.name)
	}
	compiler, err := c.compiler(names...)
	if err != nil {
		c.Fault(at, "%v", err)
		return nil
	}
	program, err := compiler.Without(without).Predicate(text)
	if err != nil {
		c.unfit(at, at, expr.Faults(nil, err)...)
		return nil
	}
	var sure []string
	unset := h != nil && h.unset
	if h != nil {
		sure = slices.Clone(h.sure)
	}
	c.check(at, at, func(s shape.Schemas) []error {
		s.Vars, s.Without, s.Sure, s.UnsetStatus = map[string]shape.Shape{}, without, sure, unset
		for _, v := range variables {
			s.Vars[v.name] = v.shape(s)
		}
		if h != nil {
			s = h.within(s)
			s.Params = given(h)
		}
		return expr.Faults(nil, check.Program(program, s))
	})
	return program
}

// compiler returns a compiler with additional variables. The first call makes it.
func (l *loader) compiler(variables ...string) (*expr.Compiler, error) {
	if l.cel == nil {
		compiler, err := expr.New()
		if err != nil {
			return nil, err
		}
		l.cel = compiler
	}
	return l.cel.With(variables...)
}

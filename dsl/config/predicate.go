// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// when compiles the handler's expression, nil when there is none or it is at fault.
func (w *watched) when(at path, h *handler) *expr.Program {
	if h.When == "" {
		return nil
	}
	program := w.predicate(at, string(h.When), nil, nil)
	if program == nil {
		return nil
	}
	h.sure = append(h.sure, check.Sure(program)...)
	missing := without(h)
	for _, variable := range []string{expr.Old, expr.Diff} {
		if why, is := missing[variable]; is && program.Uses(variable) {
			w.Fault(at, "%s %s", variable, why)
		}
	}
	return program
}

// momentary reports whether an expression is about what happens rather than about what is wanted of the object. What looks
// at children, at related objects, at indexes or at the status may cease to hold by what its handler has made, or by what becomes of
// that: then the children would be made and taken away for ever.
func (w *watched) momentary(text form.Predicate, vars ...string) bool {
	if text == "" {
		return false
	}
	compiler, err := w.loader.compiler(vars...)
	if err != nil {
		return true
	}
	program, err := compiler.Predicate(string(text))
	if err != nil || slices.ContainsFunc([]string{expr.Cause, expr.Old, expr.Diff, expr.Event}, program.Uses) {
		return true
	}
	reads := expr.ReadsOf(program)
	return reads.Children || reads.Related || len(reads.Indexes) > 0 || slices.ContainsFunc(reads.Paths, func(p dsl.Path) bool { return len(p) == 0 || p[0] == "status" })
}

// variable is one that an expression has besides those of all.
type variable struct {
	name  string
	shape func(shape.Schemas) shape.Shape
}

// objects is the variable that a schedule has for all objects of the resource.
const objects = "objects"

// predicateFor is predicate for a handler, which may be one that has no object.
func (w *watched) predicateFor(h *handler, at path, text string) *expr.Program {
	if !h.whole {
		var variables []variable
		for _, name := range h.vars {
			variables = append(variables, variable{name, func(shape.Schemas) shape.Shape { return shape.Shape{Value: true} }})
		}
		return w.predicate(at, text, h, without(h), variables...)
	}
	all := func(s shape.Schemas) shape.Shape { return shape.Shape{Schema: s.Self.Schema, List: true} }
	return w.predicate(at, text, h, without(h), variable{objects, all})
}

// predicate compiles an expression that is true or false, nil when it is at fault. It is checked
// again when schemas are known, for variables that it has not as [shape.Schemas.Without] says. The handler, if there is
// one, is asked before.
func (w *watched) predicate(at path, text string, h *handler, without map[string]string, variables ...variable) *expr.Program {
	var names []string
	for _, v := range variables {
		names = append(names, v.name)
	}
	compiler, err := w.loader.compiler(names...)
	if err != nil {
		w.Fault(at, "%v", err)
		return nil
	}
	program, err := compiler.Predicate(text)
	if err != nil {
		w.unfit(at, at, expr.Faults(nil, err)...)
		return nil
	}
	var sure []string
	unset := h != nil && h.unset
	if h != nil {
		sure = slices.Clone(h.sure)
	}
	w.check(at, at, func(s shape.Schemas) []error {
		s.Vars, s.Without, s.Sure, s.Unset = map[string]shape.Shape{}, without, sure, unset
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

// compiler returns the compiler with more variables; it is made for the first expression.
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

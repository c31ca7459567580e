// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// filters are what keeps the handler from seeing an object, and what they read of it.
func (w *watched) filters(at path, h *handler) (out []dsl.Option, reads dsl.Reads) {
	reads.Only = true
	if field := w.path(at.Key("field"), h.Field); field != nil {
		w.visible(at.Key("field"), field)
		out = append(out, dsl.Field(h.Field))
	}
	for _, m := range h.Labels {
		w.labelKey(at.Key("labels").Key(m.Key), m.Key)
		w.labelValue(at.Key("labels").Key(m.Key), m.Value)
		reads.Paths = append(reads.Paths, dsl.Path{"metadata", "labels", m.Key})
	}
	for _, m := range h.Annotations {
		w.labelKey(at.Key("annotations").Key(m.Key), strings.ToLower(m.Key)) // as the API server does
		reads.Paths = append(reads.Paths, dsl.Path{"metadata", "annotations", m.Key})
	}
	out = append(out, func(into *dsl.Handler) { into.Labels, into.Annotations = h.Labels, h.Annotations })
	if program := w.when(at.Key("when"), h); program != nil {
		out = append(out, dsl.When(program.Predicate("when", h.With)))
		if program.Uses(expr.Old) || program.Uses(expr.Diff) {
			out = append(out, func(into *dsl.Handler) { into.NoOld = false })
		}
		reads = reads.And(program.Reads())
	}
	return out, reads
}

// visible checks that the cache holds the field.
func (w *watched) visible(at path, field dsl.Path) {
	if field[0] == "metadata" || field[0] == "apiVersion" || field[0] == "kind" {
		return
	}
	if w.out.Cache == dsl.CacheMetadata {
		w.Fault(at, "cache metadata does not hold it")
	}
	covers := func(kept dsl.Path) bool { return kept.Covers(field) }
	if len(w.out.Keep) > 0 && !slices.ContainsFunc(w.out.Keep, covers) {
		w.Fault(at, "keep leaves it out of the cache")
	}
}

// when compiles the handler's expression, nil when there is none or it is at fault.
func (w *watched) when(at path, h *handler) *expr.Program {
	if h.When == "" {
		return nil
	}
	program := w.predicate(at, h.When)
	if program == nil {
		return nil
	}
	missing := without(h)
	for _, variable := range []string{expr.Old, expr.Diff} {
		if why, is := missing[variable]; is && program.Uses(variable) {
			w.Fault(at, "%s %s", variable, why)
		}
	}
	return program
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
	var variables []variable
	if h.whole {
		variables = append(variables, variable{objects, func(s shape.Schemas) shape.Shape {
			return shape.Shape{Schema: s.Self.Schema, List: true}
		}})
	}
	return w.predicateWithout(without(h), at, text, variables...)
}

// predicate compiles an expression that is true or false, nil when it is at fault. It is checked
// again when schemas are known.
func (w *watched) predicate(at path, text string, variables ...variable) *expr.Program {
	return w.predicateWithout(nil, at, text, variables...)
}

func (w *watched) predicateWithout(without map[string]string, at path, text string, variables ...variable) *expr.Program {
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
	w.found = append(w.found, w.wrongExpression(at, err)...)
	if err != nil {
		return nil
	}
	w.out.Checks = append(w.out.Checks, func(s shape.Schemas) []error {
		s.Vars, s.Without = map[string]shape.Shape{}, without
		for _, v := range variables {
			s.Vars[v.name] = v.shape(s)
		}
		return w.wrongExpression(at, check.Program(program, s)).errors()
	})
	return program
}

// wrongExpression gives what is wrong with an expression its places.
func (w *watched) wrongExpression(at path, err error) (out Faults) {
	if faulty, ok := errors.AsType[*expr.Error](err); ok {
		for _, issue := range faulty.Issues {
			out = append(out, w.placedFault(at, issue.Line, issue.Column, issue.Message))
		}
	} else if err != nil {
		out = append(out, w.placedFault(at, 0, 0, err.Error()))
	}
	return out
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

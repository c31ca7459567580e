// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"reflect"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

var _ form.Form = (*lets)(nil)

// letKey is the key of lets.
const letKey = "let"

// lets are named expressions, in the order of the document.
type lets []let

type let struct {
	name string
	text form.Expression // empty if it has a fault
}

// ReadForm reads the expressions.
func (l *lets) ReadForm(d *form.Decoder, p path, n *yaml.Node) bool {
	return d.Entries(p, n, func(name string, at path, value *yaml.Node) {
		one := let{name: name}
		d.Value(at, value, &one.text)
		*l = append(*l, one)
	})
}

// DescribeForm describes the expressions.
func (*lets) DescribeForm(d *form.Describer) *form.Schema {
	return &form.Schema{Type: "object", AdditionalProperties: d.Of(reflect.TypeFor[form.Expression]())}
}

// compiler returns a compiler with the lets that are known here, and with additional variables.
func (c *compiling) compiler(variables ...string) (*expr.Compiler, error) {
	compiler, err := c.loader.compiler()
	if err != nil {
		return nil, err
	}
	if compiler, err = compiler.WithLets(c.lets); err != nil {
		return nil, err
	}
	return compiler.With(variables...)
}

// named returns lets as package expr has them. One with a fault has any value.
func (p *part) named(at path, given lets) (out []expr.Let) {
	for _, one := range given {
		text := string(one.text)
		if text == "" {
			text = "dyn(null)"
		}
		out = append(out, expr.Let{Name: one.name, Text: text, At: p.where(at.Key(letKey).Key(one.name))})
	}
	return out
}

// wrongLet notes the fault of a let.
func (p *part) wrongLet(at path, err error) {
	if _, faulty := errors.AsType[*expr.Error](err); faulty {
		p.unfit(at, at, expr.Faults(nil, err)...)
		return
	}
	p.FaultKey(at, "%v", err)
}

// operatorLets compiles the lets of all parts of the operator.
func (l *loader) operatorLets(op *dsl.Operator) {
	of := map[string]*part{}
	var named []expr.Let
	for _, p := range l.parts {
		for _, one := range p.named("", p.form.Let) {
			if first := of[one.Name]; first != nil {
				p.FaultKey(path(letKey).Key(one.Name), "there is a let %s already (at %s)", one.Name, first.where(path(letKey).Key(one.Name)))
				continue
			}
			one.Elsewhere, of[one.Name] = true, p
			named = append(named, one)
		}
	}
	if len(named) == 0 {
		return
	}
	compiler, err := l.compiler()
	if err != nil {
		of[named[0].Name].Fault(letKey, "%v", err)
		return
	}
	known, faults := compiler.Lets(nil, named)
	l.lets = known
	for _, f := range faults {
		of[f.Name].wrongLet(path(letKey).Key(f.Name), f.Err)
	}
	for _, one := range named {
		p, at := of[one.Name], path(letKey).Key(one.Name)
		op.Checks = append(op.Checks, p.placed(at, at, unused(known, one.Name)))
		for _, name := range ofAResource {
			if program := known.Program(one.Name); program != nil && program.Uses(name) {
				p.Fault(at, "%s is not there in a let of the operator (it can stand in one of a resource or a handler)", name)
			}
		}
	}
}

// ofAResource are the variables that mean something else for each resource or handler.
var ofAResource = []string{expr.Old, expr.Diff, expr.Event, expr.Params, expr.Children, expr.Related, expr.Handlers}

// unused warns of a let that no expression uses.
func unused(known *expr.Lets, name string) shape.Check {
	return func(shape.Schemas) []error {
		if known.Program(name) == nil || known.Used(name) {
			return nil
		}
		return []error{&shape.Misfit{Key: true, Warning: true, Message: "no expression uses this " + known.Word(name)}}
	}
}

// letsAt compiles the lets at a place, with those around it. Within adds what is known of their variables.
func (c *compiling) letsAt(at path, given lets, anyEntry bool, within func(shape.Schemas) shape.Schemas, variables ...string) *expr.Lets {
	compiler, err := c.loader.compiler(variables...)
	if err != nil || len(given) == 0 {
		return c.lets // the faults of expressions say why there is no compiler
	}
	named := c.named(at, given)
	for i := range named {
		named[i].AnyEntry = anyEntry
	}
	known, faults := compiler.Lets(c.lets, named)
	for _, f := range faults {
		c.wrongLet(at.Key(letKey).Key(f.Name), f.Err)
	}
	for _, one := range named {
		program, place := known.Program(one.Name), at.Key(letKey).Key(one.Name)
		if program == nil || slices.ContainsFunc(faults, func(f expr.LetFault) bool { return f.Name == one.Name }) {
			continue
		}
		c.check(place, place, func(s shape.Schemas) []error {
			return expr.Faults(nil, check.Program(program, check.Let(&one, within(s))))
		})
		c.check(place, place, unused(known, one.Name))
	}
	return known
}

// resourceLets compiles the lets of the resource.
func (w *watched) resourceLets() {
	each := func(h handler) bool { return h.ForEach.Value != nil }
	w.lets = w.letsAt(w.at, w.form.Let, slices.ContainsFunc(w.form.Handlers, each), func(s shape.Schemas) shape.Schemas { return s })
}

// forHandler returns the resource as the expressions of a handler see it: with the handler's lets.
func (w *watched) forHandler(at path, h *making) *watched {
	out := *w
	h.names = w.variables(at, h)
	out.lets = w.letsAt(at, h.Let, false, h.around(), h.names...)
	return &out
}

// variables returns the names of the variables that a handler's expressions have besides those of all handlers.
func (w *watched) variables(at path, h *making) []string {
	switch each := at.Key(forEach); {
	case h.kind == dsl.ScheduleHandler:
		return []string{objects}
	case w.Has(each) || w.Faulty(each):
		return expr.ItemVariables()
	}
	return nil
}

// around returns what adds to schemas what is known of these variables.
func (h *making) around() func(shape.Schemas) shape.Schemas {
	if h.kind == dsl.ScheduleHandler {
		return func(s shape.Schemas) shape.Schemas {
			return s.With(objects, shape.Shape{Schema: s.Self.Schema, List: true, Kept: s.Self.Kept})
		}
	}
	return h.within
}

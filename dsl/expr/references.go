// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Children returns the names of the children that the expression refers to, sorted: those that it
// selects from children by a constant, as in children.db, children["db"] and children.?db. Whole
// reports whether it uses children in another way too, so that any name may be meant.
func (p *Program) Children() (names []string, whole bool) { return p.selected(Children) }

// Related is Children for related objects.
func (p *Program) Related() (names []string, whole bool) { return p.selected(Related) }

// selected returns what the expression selects from a variable.
func (p *Program) selected(variable string) (names []string, whole bool) {
	if !p.Uses(variable) {
		return nil, false
	}
	parsed, issues := p.compiler.env.Parse(p.text)
	if issues.Err() != nil { // it was compiled once: this does not happen
		return nil, true
	}
	r := &references{variable: variable, names: map[string]bool{}}
	r.visit(parsed.NativeRep().Expr())
	return slices.Sorted(maps.Keys(r.names)), r.whole
}

// references gathers what an expression selects from a variable.
type references struct {
	variable string
	names    map[string]bool
	whole    bool
}

func (r *references) visit(e ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		r.whole = r.whole || r.is(e)
	case ast.SelectKind:
		if s := e.AsSelect(); r.is(s.Operand()) {
			r.names[s.FieldName()] = true
		} else {
			r.visit(s.Operand())
		}
	case ast.CallKind:
		r.call(e.AsCall())
	case ast.ComprehensionKind:
		r.comprehension(e.AsComprehension())
	case ast.ListKind:
		r.all(e.AsList().Elements())
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.all([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()})
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.visit(field.AsStructField().Value())
		}
	}
}

func (r *references) all(list []ast.Expr) {
	for _, e := range list {
		r.visit(e)
	}
}

func (r *references) call(c ast.CallExpr) {
	if c.IsMemberFunction() {
		r.visit(c.Target())
	}
	args := c.Args()
	switch c.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		if name, constant := constantText(args[1]); constant && r.is(args[0]) {
			r.names[name] = true
			return
		}
	}
	r.all(args)
}

// comprehension leaves out what is about a variable of the macro's own that has the same name.
func (r *references) comprehension(c ast.ComprehensionExpr) {
	r.all([]ast.Expr{c.IterRange(), c.AccuInit()})
	if r.variable == c.IterVar() || c.HasIterVar2() && r.variable == c.IterVar2() {
		return
	}
	r.all([]ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()})
}

// is reports whether the expression is the variable itself.
func (r *references) is(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && e.AsIdent() == r.variable
}

// constantText returns the text that an expression is, if it is a constant.
func constantText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	value, ok := e.AsLiteral().Value().(string)
	return value, ok
}

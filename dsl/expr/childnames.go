// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// WithChildren returns the lets for the expressions of a part whose children have other names in the resource than in the
// part. The keys are the names in the part. Lets that are compiled around the result have the same names.
func (l *Lets) WithChildren(names map[string]string) *Lets {
	out := &Lets{all: map[string]*let{}, children: names}
	if l != nil {
		out.all, out.own = l.all, l.own
	}
	return out
}

// ChildName returns the name in the resource of a child that has the name where the lets are known. It differs in a part that
// is used with a name of its own.
func (l *Lets) ChildName(name string) string {
	if l != nil {
		if other, found := l.children[name]; found {
			return other
		}
	}
	return name
}

// PartName returns the name in the part of a child that has the name in the resource: what ChildName takes.
func (l *Lets) PartName(name string) string {
	if l != nil {
		for own, other := range l.children {
			if other == name {
				return own
			}
		}
	}
	return name
}

// IsParameter reports whether a variable of the expression is the parameter of a part.
func (p *Program) IsParameter(name string) bool {
	found := p.compiler.lets.find(name)
	return found != nil && found.Parameter != nil
}

// PartNames returns names of children as an expression has them, sorted: in a part that is used with a name they differ from
// those in the resource.
func (p *Program) PartNames(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = p.compiler.lets.PartName(name)
	}
	slices.Sort(out)
	return out
}

// childMaps are the variables whose keys are names of children.
var childMaps = []string{Children, Current}

// renamed replaces the names of children in a parsed expression by those that they have in the resource. Lets returns those that
// the text at a part of the expression knows: a value that is written out keeps the names of the file that it is from.
func renamed(parsed *cel.Ast, lets func(e ast.Expr) *Lets) *cel.Ast {
	free, factory := map[int64]bool{}, ast.NewExprFactory() // a macro may have a variable of such a name
	freeIn(ast.NavigateAST(parsed.NativeRep()), nil, func(e ast.Expr, _ []string) {
		if slices.Contains(childMaps, strings.TrimPrefix(e.AsIdent(), ".")) {
			free[e.ID()] = true
		}
	})
	if len(free) == 0 {
		return parsed
	}
	ast.PostOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			s := e.AsSelect()
			if !free[s.Operand().ID()] {
				return
			}
			selected := factory.NewSelect
			if s.IsTestOnly() {
				selected = factory.NewPresenceTest
			}
			e.SetKindCase(selected(e.ID(), s.Operand(), lets(s.Operand()).ChildName(s.FieldName())))
		case ast.CallKind:
			of, key := keyed(e.AsCall())
			if key == nil || !free[of.ID()] {
				return
			}
			if name, is := key.AsLiteral().(types.String); is {
				key.SetKindCase(factory.NewLiteral(key.ID(), types.String(lets(of).ChildName(string(name)))))
			}
		}
	}))
	return parsed
}

// renamed replaces names of children in an expression of the compiler.
func (c *Compiler) renamed(parsed *cel.Ast) *cel.Ast {
	if c.lets == nil || len(c.lets.children) == 0 {
		return parsed
	}
	return renamed(parsed, func(ast.Expr) *Lets { return c.lets })
}

// keyed returns the map and the constant key of m["key"], m.?key and "key" in m; nil for other calls.
func keyed(call ast.CallExpr) (of, key ast.Expr) {
	args := call.Args()
	if call.FunctionName() == operators.In && args[0].Kind() == ast.LiteralKind {
		return args[1], args[0]
	}
	byKey := []string{operators.Index, operators.OptIndex, operators.OptSelect}
	if slices.Contains(byKey, call.FunctionName()) && len(args) == 2 && args[1].Kind() == ast.LiteralKind {
		return args[0], args[1]
	}
	return nil, nil
}

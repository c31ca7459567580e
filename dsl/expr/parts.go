// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// wayOf returns the variable and the fields that a path selects by constant names; empty for other parts.
func wayOf(e ast.Expr) (root string, way []string) {
	if e.Kind() == ast.IdentKind {
		return strings.TrimPrefix(e.AsIdent(), "."), nil
	}
	operand, name, how := Selection(e)
	if how == "" {
		return "", nil
	}
	if root, way = wayOf(operand); root == "" {
		return "", nil
	}
	return root, append(way, name)
}

// chained returns the part from which others are selected, by names, keys or numbers, and whether some are.
func chained(e ast.Expr) (base ast.Expr, chain bool) {
	for {
		switch {
		case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly():
			e = e.AsSelect().Operand()
		case e.Kind() == ast.CallKind && slices.Contains([]string{operators.Index, operators.OptIndex, operators.OptSelect}, e.AsCall().FunctionName()):
			e = e.AsCall().Args()[0]
		default:
			return e, chain
		}
		chain = true
	}
}

// tested reports whether a part is a has().
func tested(e ast.Expr) bool { return e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() }

// constant reports whether a part has the same value always.
func constant(e ast.Expr) bool {
	switch e.Kind() {
	case ast.LiteralKind:
		return true
	case ast.ListKind:
		return !slices.ContainsFunc(e.AsList().Elements(), func(one ast.Expr) bool { return !constant(one) })
	case ast.MapKind:
		return !slices.ContainsFunc(e.AsMap().Entries(), func(one ast.EntryExpr) bool { return !constant(one.AsMapEntry().Value()) })
	}
	return false
}

// flat returns the operands of an operator and of the same operator within it.
func flat(e ast.Expr, operator string) (out []ast.Expr) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operator {
		return []ast.Expr{e}
	}
	for _, arg := range e.AsCall().Args() {
		out = append(out, flat(arg, operator)...)
	}
	return out
}

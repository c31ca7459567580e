// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// AtMostOne reports whether an expression clearly has at most one element: it is a literal list or map, or a ?: of
// such literals.
func AtMostOne(p *expr.Program) bool { return atMostOne(p.AST().Expr()) }

func atMostOne(e ast.Expr) bool {
	switch e.Kind() {
	case ast.ListKind:
		return e.AsList().Size() <= 1
	case ast.MapKind:
		return e.AsMap().Size() <= 1
	case ast.CallKind:
		args := e.AsCall().Args()
		return e.AsCall().FunctionName() == operators.Conditional && atMostOne(args[1]) && atMostOne(args[2])
	}
	return false
}

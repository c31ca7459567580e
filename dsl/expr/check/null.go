// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// Asks reports whether an expression asks somewhere if a variable, or a field of it, is there.
func Asks(p *expr.Program, variable string) (found bool) {
	ast.PreOrderVisit(p.AST().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.CallKind {
			args := e.AsCall().Args()
			switch e.AsCall().FunctionName() {
			case operators.Equals, operators.NotEquals:
				found = found || isVariable(args[0], variable) && isNullLiteral(args[1]) || isNullLiteral(args[0]) && isVariable(args[1], variable)
			}
		}
	}))
	for _, way := range asked(p.AST().Expr()) {
		found = found || way == variable || strings.HasPrefix(way, variable+".") || strings.HasPrefix(way, variable+"[")
	}
	return found
}

// Reads warns with a message of the first field of a variable that an expression reads.
func Reads(p *expr.Program, variable, message string) error {
	var out []expr.Issue
	ast.PreOrderVisit(p.AST().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if of, _, how := expr.Selection(e); how != "" && isVariable(of, variable) && len(out) == 0 {
			out = append(out, expr.Issue{Place: p.Place(of), Message: message})
		}
	}))
	if len(out) == 0 {
		return nil
	}
	return p.Fault(nil, out)
}

func isVariable(e ast.Expr, name string) bool {
	return e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == name
}

func isNullLiteral(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue
}

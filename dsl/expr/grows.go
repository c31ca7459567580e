// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Grows reports whether the value of a template adds to the value at a path of a variable, as in ${self.spec.replicas + 1}. A field that
// is set to it changes each time. Only sums, differences and products count: of other expressions it is not known.
func (t *Template) Grows(variable string, path dsl.Path) bool {
	return slices.ContainsFunc(t.Pieces, func(p Piece) bool {
		return p.Program != nil && p.Program.grows(variable, path, len(t.Pieces) > 1)
	})
}

// grows is Grows for an expression. Added: its value is part of a longer text.
func (p *Program) grows(variable string, path dsl.Path, added bool) bool {
	var at []int64
	for _, lead := range p.Leads(variable) {
		if slices.Equal(lead.Path, path) {
			at = append(at, lead.At.ID())
		}
	}
	return len(at) > 0 && addsTo(p.full.ast.Expr(), at, added)
}

// addsTo reports whether a part adds to one of other parts, or is one of them and is itself added to something.
func addsTo(e ast.Expr, others []int64, added bool) bool {
	if slices.Contains(others, e.ID()) {
		return added
	}
	if e.Kind() != ast.CallKind {
		return false
	}
	call := e.AsCall()
	operand := func(part ast.Expr) bool { return addsTo(part, others, added) }
	switch call.FunctionName() {
	case operators.Add, operators.Subtract, operators.Multiply:
		added = true
		return slices.ContainsFunc(call.Args(), operand)
	case "string", "int", "double", "dyn":
		return slices.ContainsFunc(call.Args(), operand)
	case "orValue":
		return operand(call.Target())
	}
	return false
}

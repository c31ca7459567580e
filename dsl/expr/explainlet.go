// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// lets returns the lets that a part of the expression uses.
func (x *recorder) lets(e ast.Expr) (out []*let) {
	bound := slices.Collect(maps.Keys(x.bound))
	freeIn(ast.NavigateExpr(x.program.ast, e), bound, func(e ast.Expr, _ []string) {
		if l := x.program.compiler.lets.find(strings.TrimPrefix(e.AsIdent(), ".")); l != nil && l.program != nil {
			out = append(out, l)
		}
	})
	return out
}

// letOf returns the let whose value, or a part of it, a part of the expression is; nil for other parts.
func (x *recorder) letOf(e ast.Expr) *let {
	base, _ := chained(e)
	if base.Kind() != ast.IdentKind {
		return nil
	}
	if all := x.lets(base); len(all) > 0 {
		return all[0]
	}
	return nil
}

// letSources returns the sources of the values that the lets of a part read; see [recorder.sources].
func (x *recorder) letSources(e ast.Expr) (out []string) {
	for _, l := range x.lets(e) {
		out = append(out, valuesOf(l.program.read)...)
		for _, name := range l.program.reads() {
			if !slices.Contains(variables(), name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// within adds what decided the value of a let, if that is true or false, or an error.
func (x *recorder) within(l *let, v ref.Val) {
	if _, answer := v.(types.Bool); !answer && !types.IsError(v) || x.told[l] {
		return
	}
	x.told[l] = true
	scope := x.activation.scope
	if l.program.tooMuch(scope) != nil {
		return
	}
	inner, err := l.program.recorder()
	if err != nil { // it was compiled before
		return
	}
	inner.told = x.told
	inner.activation = inner.program.newActivation(scope)
	inner.activation.hear = inner.hear
	value, details, _ := inner.program.eval(inner.activation)
	if details == nil || value == nil {
		return
	}
	inner.state, inner.holds = details.State(), value == types.True
	inner.decide(inner.program.ast.Expr(), value, true)
	for _, one := range inner.values {
		x.add(one.Text, one.Value)
	}
}

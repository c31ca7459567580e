// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/parser"

	"github.com/handwerk-dev/handwerk/dsl"
)

// decide adds the parts that decided the value of a part. Whole: it is all of the expression.
func (x *recorder) decide(e ast.Expr, v ref.Val, whole bool) {
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		switch call.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			x.joined(e, v)
			return
		case operators.LogicalNot, operators.NotStrictlyFalse:
			if of, known := x.value(call.Args()[0]); known {
				x.decide(call.Args()[0], of, false)
			}
			return
		case operators.Conditional:
			x.chosen(call.Args(), v)
			return
		case "ready":
			x.operand(e, v)
			return
		}
	case ast.ComprehensionKind:
		x.loop(e, v, whole)
		return
	}
	if _, chain := chained(e); chain || e.Kind() == ast.IdentKind || tested(e) {
		x.operand(e, v)
		if l := x.letOf(e); l != nil && !chain {
			x.within(l, v)
		}
		return
	}
	x.part(e, v, whole)
	x.operands(e)
}

// part adds a part of the expression that is false, or that fails: which one that is says more than its operands.
func (x *recorder) part(e ast.Expr, v ref.Val, whole bool) {
	if answer, is := v.(types.Bool); is && !whole && !x.holds {
		x.add(x.text(e), x.answer(e, bool(answer)))
	}
}

// joined adds what decided an && or an ||: the first operand with the value of all, or else each of them.
func (x *recorder) joined(e ast.Expr, v ref.Val) {
	decisive := types.Bool(e.AsCall().FunctionName() == operators.LogicalOr)
	for _, part := range flat(e, e.AsCall().FunctionName()) {
		of, known := x.value(part)
		if !known {
			of, known = v, v == decisive // the value of a part that is a choice is not recorded
			if !known {
				continue
			}
		}
		switch {
		case types.IsError(v) != types.IsError(of):
		case types.IsError(v), of == decisive && v == decisive:
			x.decide(part, of, false)
			return
		case v != decisive:
			x.decide(part, of, false)
		}
	}
}

// chosen adds what decided a choice: its condition, and the outcome that it has chosen.
func (x *recorder) chosen(args []ast.Expr, v ref.Val) {
	condition, known := x.value(args[0])
	if !known {
		return
	}
	x.decide(args[0], condition, false)
	switch condition {
	case types.True:
		x.decide(args[1], v, false)
	case types.False:
		x.decide(args[2], v, false)
	}
}

// loop adds what decided a loop over a list or a map. For the macros all and exists, it is mostly one element.
func (x *recorder) loop(e ast.Expr, v ref.Val, whole bool) {
	c := e.AsComprehension()
	x.part(e, v, whole)
	macro, is := x.program.ast.SourceInfo().GetMacroCall(e.ID())
	ends := map[string]ref.Val{"all": types.False, "exists": types.True}
	if is && macro.Kind() == ast.CallKind && ends[macro.AsCall().FunctionName()] == v {
		x.element(c, v)
	} else if of, known := x.value(c.IterRange()); known {
		x.operand(c.IterRange(), of)
	}
}

// element adds the element that ended a loop, and what decided about it.
func (x *recorder) element(c ast.ComprehensionExpr, v ref.Val) {
	outside, sources := x.bound, x.sources(c.IterRange())
	x.bound = maps.Clone(outside)
	for _, name := range iterated(c) {
		x.bound[name] = slices.Concat(outside[name], sources)
		if found := x.elements[c.LoopStep().ID()][name]; found != nil {
			x.add(name, x.shown(c.IterRange(), found))
		}
	}
	if c.LoopStep().Kind() == ast.CallKind {
		x.decide(c.LoopStep().AsCall().Args()[1], v, false)
	}
	x.bound = outside
}

// operands adds the operands of a call. Where one of them fails, that alone has decided.
func (x *recorder) operands(e ast.Expr) {
	var parts []ast.Expr
	switch e.Kind() {
	case ast.CallKind:
		if parts = e.AsCall().Args(); e.AsCall().IsMemberFunction() {
			parts = slices.Concat([]ast.Expr{e.AsCall().Target()}, parts)
		}
	case ast.ListKind:
		parts = e.AsList().Elements()
	}
	for _, part := range parts {
		if of, known := x.value(part); known && types.IsError(of) {
			x.operand(part, of)
			return
		}
	}
	for _, part := range parts {
		if of, known := x.value(part); known && !constant(part) {
			x.operand(part, of)
		}
	}
}

// operand adds a part of the expression with its value.
func (x *recorder) operand(e ast.Expr, v ref.Val) {
	switch none := x.none(e, v); {
	case none != nil:
		x.lacks(none)
	case types.IsError(v):
		if l := x.letOf(e); l != nil {
			x.within(l, v)
		}
		x.operands(e)
	case tested(e): // it asks whether a value exists, and has no value of its own
		x.add(x.text(e), shown(v))
	default:
		x.add(x.text(e), x.shown(e, v))
	}
}

// none returns the path without a value that gave a part its value; nil for other parts.
func (x *recorder) none(e ast.Expr, v ref.Val) ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "orValue" {
		e = e.AsCall().Target()
		v, _ = x.value(e)
	}
	_, chain := chained(e)
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return e
		}
	case types.Bool:
		if tested(e) && !bool(v) {
			return e
		}
	case *types.Err:
		if (chain || tested(e)) && strings.HasPrefix(v.Error(), noSuchKey) {
			return e
		}
	}
	return nil
}

// lacks adds a path that does not exist.
func (x *recorder) lacks(e ast.Expr) {
	root, way := wayOf(e)
	value, known := any(nil), false
	if x.bound[root] == nil && root != "" {
		value, known = x.activation.ResolveName(root)
	}
	if at := lost(value, way); known && at >= 0 {
		way = way[:at+1]
		if object, _ := value.(map[string]any); (root == Children || root == Related) && at > 0 && empty(object[way[0]]) {
			x.add(written(root, way[:1])+x.activation.absent(root, way[0]), dsl.NotThere)
			return
		}
	}
	if root == "" {
		x.add(x.text(e), dsl.NotSet)
		return
	}
	x.add(written(root, way), dsl.NotSet)
}

// empty reports whether a value is an empty map, which stands for an object that does not exist.
func empty(value any) bool {
	object, is := value.(map[string]any)
	return is && len(object) == 0
}

// value returns the value of a part, if it was evaluated. CEL evaluates what is selected from a part in one step, and
// records it with the part.
func (x *recorder) value(e ast.Expr) (ref.Val, bool) {
	base, chain := chained(e)
	if v, found := x.state.Value(base.ID()); found {
		return v, true
	}
	if !chain {
		return nil, false
	}
	return x.state.Value(e.ID())
}

// text returns the text of a part.
func (x *recorder) text(e ast.Expr) string {
	if root, way := wayOf(e); root != "" && !tested(e) {
		return written(root, way)
	}
	text, err := parser.Unparse(e, x.program.ast.SourceInfo())
	if err != nil {
		return x.program.text
	}
	return text
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// argument is an argument of a call with its type.
type argument struct {
	ast.Expr
	valueType
}

// call returns the type of a call's result.
func (in *inspector) call(e ast.Expr, s *scope) valueType {
	call := e.AsCall()
	var args []argument
	if call.IsMemberFunction() {
		args = append(args, argument{call.Target(), in.infer(call.Target(), s)})
	}
	args = append(args, in.operands(call, s)...)
	switch call.FunctionName() {
	case operators.OptSelect:
		name, _ := expr.ConstantText(args[1].Expr)
		return optional(in.member(e, args[0].Expr, args[0].valueType, name))
	case operators.Index, operators.OptIndex:
		return in.index(e, args, s)
	case operators.Equals, operators.NotEquals:
		in.compared(args[0], args[1], s)
		in.compared(args[1], args[0], s)
		return in.equality(e, args)
	case operators.LogicalAnd, operators.LogicalOr:
		in.conditions(e, args)
		return only(isBool)
	case operators.Conditional:
		in.conditions(e, args[:1])
		return join(args[1].valueType, args[2].valueType)
	}
	if call.FunctionName() == operators.In {
		in.compared(args[0], args[1], s)
	}
	out := in.resolve(e, args)
	if known, special := passedOn(call.FunctionName(), args); special {
		return known
	}
	return out
}

// passedOn returns the result of functions that return one of their arguments.
func passedOn(function string, args []argument) (valueType, bool) {
	if len(args) == 0 {
		return valueType{}, false
	}
	first := args[0]
	switch {
	case function == "dyn":
		return unknown(), true
	case function == "optional.of", function == "optional.ofNonZeroValue":
		return optional(first.valueType), true
	case function == operators.Add && first.kinds == isList && args[1].kinds == isList:
		return listOf(join(first.inner(), args[1].inner())), true
	case first.kinds != isOptional:
		return valueType{}, false
	case function == "value":
		return first.inner(), true
	case function == "orValue":
		return join(first.inner(), args[1].valueType), true
	case function == "or" && args[1].kinds == isOptional:
		return optional(join(first.inner(), args[1].inner())), true
	}
	return valueType{}, false
}

// index returns the type of a list's element, or of a field in brackets.
func (in *inspector) index(e ast.Expr, args []argument, s *scope) valueType {
	of, key := args[0], args[1]
	wrap := func(t valueType) valueType { return t }
	if e.AsCall().FunctionName() == operators.OptIndex || of.kinds == isOptional {
		wrap = optional
	}
	if of.kinds == isOptional {
		of.valueType = of.inner()
	}
	if name, constant := expr.ConstantText(key.Expr); constant && !of.isUnknown() && of.may(isMap) {
		if e.AsCall().FunctionName() == operators.Index && args[0].kinds != isOptional {
			in.unsure(e, of.Expr, of.valueType, name)
			in.absent(e, of.Expr, s)
		}
		return wrap(in.member(key.Expr, of.Expr, of.valueType, name))
	}
	in.resolve(e, []argument{of, key})
	if _, keyed := of.fields.(*keyedFields); keyed && !key.may(singleKey) {
		in.issue(key.Expr, "a key of an index is text, a number or true or false, found %s", in.called(key.Expr, key.valueType))
	}
	switch {
	case of.kinds == isList:
		return wrap(of.inner())
	case of.kinds == isMap && of.fields != nil:
		return wrap(of.fields.any())
	}
	return wrap(unknown())
}

// equality reports two values that are never equal. It ignores null and optional values.
func (in *inspector) equality(e ast.Expr, args []argument) valueType {
	a, b := args[0].kinds.withNumbers(), args[1].kinds.withNumbers()
	const odd = isNull | isOptional | isOther
	if a != 0 && b != 0 && a&b == 0 && (a|b)&odd == 0 {
		in.issue(e, "%s and %s are never equal",
			in.called(args[0].Expr, args[0].valueType), in.called(args[1].Expr, args[1].valueType))
	}
	return only(isBool)
}

// compared reports words that a value is compared with and that it never has: of the variable cause, of the state in an outcome, and of
// request.operation, which has upper case.
func (in *inspector) compared(value, with argument, s *scope) {
	switch {
	case in.isVariable(value.Expr, expr.Cause, s):
		var known []string
		for _, c := range dsl.Causes() {
			known = append(known, string(c))
		}
		in.words(with, "cause", known)
	case in.isState(value.Expr, s):
		in.words(with, "state", dsl.OutcomeStates())
	case in.isOperation(value.Expr, s):
		var known []string
		for _, o := range dsl.AllOperations() {
			known = append(known, string(o))
		}
		in.words(with, "operation", known)
	}
}

// isOperation reports whether a part is request.operation of a rule about requests.
func (in *inspector) isOperation(e ast.Expr, s *scope) bool {
	of, name, _ := expr.Selection(e)
	_, rule := in.schemas.Vars[expr.Request]
	return rule && name == "operation" && in.isVariable(of, expr.Request, s)
}

// isVariable reports whether a part is a variable, and not one of a macro with the same name.
func (in *inspector) isVariable(e ast.Expr, name string, s *scope) bool {
	_, macros := s.find(name)
	return e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == name && !macros
}

// words reports constants that are not among the known words. The constant is a value, or an element of a list.
func (in *inspector) words(with argument, what string, known []string) {
	words := []ast.Expr{with.Expr}
	if with.Kind() == ast.ListKind {
		words = with.AsList().Elements()
	}
	for _, word := range words {
		if text, constant := expr.ConstantText(word); constant && !slices.Contains(known, text) {
			in.issue(word, "%s", expr.Unknown(what, text, "", known))
		}
	}
}

// conditions reports operands that can be neither true nor false.
func (in *inspector) conditions(e ast.Expr, args []argument) {
	for _, arg := range args {
		if !arg.may(isBool) {
			in.issue(arg.Expr, "%s wants true or false, not %s",
				expr.FunctionNamed(e.AsCall().FunctionName()), in.called(arg.Expr, arg.valueType))
		}
	}
}

// resolve finds the overloads of a function that fit at run time, and reports arguments that fit none.
func (in *inspector) resolve(e ast.Expr, args []argument) valueType {
	call := e.AsCall()
	overloads := in.program.Overloads(call.FunctionName())
	if len(overloads) == 0 {
		return in.static(e)
	}
	var out valueType
	tried, taken := false, false
	for _, overload := range overloads {
		if overload.IsMemberFunction() != call.IsMemberFunction() || len(overload.ArgTypes()) != len(args) {
			continue
		}
		tried = true
		if takes(overload, args) {
			taken = true
			out = join(out, ofCEL(overload.ResultType()))
		}
	}
	switch {
	case taken:
		return out
	case tried:
		in.mismatch(e, args)
	}
	return unknown()
}

func takes(overload *decls.OverloadDecl, args []argument) bool {
	for i, parameter := range overload.ArgTypes() {
		if !args[i].may(kindsOfCEL(parameter)) {
			return false
		}
	}
	return true
}

// mismatch reports arguments that do not fit a function or each other.
func (in *inspector) mismatch(e ast.Expr, args []argument) {
	var with []string
	for _, arg := range args {
		if !arg.isUnknown() {
			with = append(with, in.called(arg.Expr, arg.valueType))
		}
	}
	in.issue(e, "%s", expr.CannotUse(e.AsCall().FunctionName(), with))
}

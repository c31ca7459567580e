// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// Sure returns the ways through the object, as self.spec.tls, of which a predicate that holds makes sure that they lead
// to something.
func Sure(predicate *expr.Program) []string { return sure(predicate.AST().Expr(), true) }

// Asked returns the ways through the object of which a template asks whether they lead to something.
func Asked(t *expr.Template) (out []string) {
	for _, program := range t.Programs() {
		out = append(out, asked(program.AST().Expr())...)
	}
	return out
}

// sure returns the ways that lead to something when a part is true, or false.
func sure(e ast.Expr, holds bool) []string {
	switch {
	case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() && !holds:
		return nil
	case e.Kind() != ast.CallKind:
		return asked(e)
	}
	return sureOf(e, e.AsCall(), holds)
}

// sureOf is sure of a part that is a call.
func sureOf(e ast.Expr, call ast.CallExpr, holds bool) []string {
	args := call.Args()
	switch function := call.FunctionName(); {
	case function == operators.LogicalNot:
		return sure(args[0], !holds)
	case function == operators.LogicalAnd && holds, function == operators.LogicalOr && !holds:
		return slices.Concat(sure(args[0], holds), sure(args[1], holds))
	case function == operators.LogicalAnd, function == operators.LogicalOr: // either one may have decided
		return nil
	case function == "hasValue" && call.IsMemberFunction() && holds:
		return prefixes(described(call.Target()))
	case function == "hasValue":
		return nil
	case function == operators.In && holds:
		if key, constant := expr.ConstantText(args[0]); constant {
			return append(prefixes(described(args[1]), fmt.Sprintf("['%s']", key), "."+key), asked(e)...)
		}
	}
	return asked(e)
}

// asked returns the ways of which a part asks somewhere in it whether they lead to something, as in
// self.spec.?host.orValue("") != "". What its outcome says of them is not worked out: who has asked knows it.
func asked(e ast.Expr) (out []string) {
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly():
			out = append(out, prefixes(described(e.AsSelect().Operand()), "."+e.AsSelect().FieldName())...)
		case e.Kind() == ast.CallKind && (e.AsCall().FunctionName() == operators.OptSelect || e.AsCall().FunctionName() == operators.OptIndex):
			out = append(out, prefixes(described(e))...)
		}
	}))
	return out
}

// prefixes returns the way with each of the last steps, and all ways that lead there.
func prefixes(way string, last ...string) (out []string) {
	if way == "" {
		return nil
	}
	for _, step := range last {
		out = append(out, way+step)
	}
	for at, sign := range way {
		if sign == '.' || sign == '[' {
			out = append(out, way[:at])
		}
	}
	return append(out, way)
}

// under works out a part of which something before has made sure of more.
func (in *inspector) under(more []string, e ast.Expr, s *scope) valueType {
	before := in.sure
	in.sure = slices.Concat(before, more)
	out := in.infer(e, s)
	in.sure = before
	return out
}

// operands returns the arguments of a call, of which one may have made sure of what another one reads: CEL asks both
// sides of && and ||, in any order, and an error of one does not count when the other one decides.
func (in *inspector) operands(call ast.CallExpr, s *scope) (out []argument) {
	args := call.Args()
	made := make([][]string, len(args))
	switch call.FunctionName() {
	case operators.LogicalAnd:
		made[0], made[1] = sure(args[1], true), sure(args[0], true)
	case operators.LogicalOr:
		made[0], made[1] = sure(args[1], false), sure(args[0], false)
	case operators.Conditional:
		made[1], made[2] = sure(args[0], true), sure(args[0], false)
	}
	for i, arg := range args {
		out = append(out, argument{arg, in.under(made[i], arg, s)})
	}
	return out
}

// mostDoubts is how many fields of one expression, or of one template, are told of that may not be set.
const mostDoubts = 20

// unsure warns of a field of the object that need not be set, when nothing makes sure that it is. Spec and status
// themselves, which many schemas do not require although all objects have them, are not doubted, nor is metadata, of
// which selectors know more. Of Kubernetes' own kinds nothing is: their schemas do not tell of defaults.
func (in *inspector) unsure(e, of ast.Expr, t valueType, name string) {
	fields, known := t.fields.(*schemaFields)
	way, parent := described(e), described(of)
	switch {
	case in.schemas.Unset, in.schemas.Kind.Own, !known, len(in.doubted) >= mostDoubts:
		return
	case !strings.HasPrefix(parent, expr.Self+".") || strings.HasPrefix(parent, expr.Self+".metadata") || !fields.optional(name):
		return
	case slices.Contains(in.sure, way), slices.ContainsFunc(prefixes(parent, strings.TrimPrefix(way, parent)), in.isDoubted):
		return
	}
	in.doubted = append(in.doubted, way)
	instead, ask := fmt.Sprintf("%s.?%s", parent, name), fmt.Sprintf("has(%s)", way)
	if way != parent+"."+name {
		instead, ask = fmt.Sprintf("%s[?'%s']", parent, name), fmt.Sprintf("'%s' in %s", name, parent)
	}
	in.doubts = append(in.doubts, expr.Issue{Place: in.program.Place(e), Message: fmt.Sprintf(
		"%s need not be set, and nothing makes sure that it is: write %s.orValue(…), or ask %s before", way, instead, ask)})
}

func (in *inspector) isDoubted(way string) bool { return slices.Contains(in.doubted, way) }

// optional reports whether a field that the schema names need not be set and has no default.
func (f *schemaFields) optional(name string) bool {
	p, named := f.schema.Properties[name]
	return named && p.Default == nil && !slices.Contains(f.schema.Required, name)
}

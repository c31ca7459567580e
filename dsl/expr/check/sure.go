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

// Sure returns the paths in the object, as self.spec.tls, that must exist if a predicate holds.
func Sure(predicate *expr.Program) []string { return sure(predicate.AST().Expr(), true) }

// Asked returns the paths in the object whose existence a template tests.
func Asked(t *expr.Template) (out []string) {
	for _, program := range t.Programs() {
		out = append(out, asked(program.AST().Expr())...)
	}
	return out
}

// sure returns the paths that must exist if a part is true, or false.
func sure(e ast.Expr, holds bool) []string {
	switch {
	case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() && !holds:
		return nil
	case e.Kind() != ast.CallKind:
		return asked(e)
	}
	return sureOf(e, e.AsCall(), holds)
}

// sureOf is sure for a call.
func sureOf(e ast.Expr, call ast.CallExpr, holds bool) []string {
	args := call.Args()
	switch function := call.FunctionName(); {
	case function == operators.LogicalNot:
		return sure(args[0], !holds)
	case function == operators.LogicalAnd && holds, function == operators.LogicalOr && !holds:
		return slices.Concat(sure(args[0], holds), sure(args[1], holds))
	case function == operators.LogicalAnd, function == operators.LogicalOr: // either operand may have decided
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

// asked returns the paths whose existence some part of an expression tests, as in self.spec.?host.orValue("") !=
// "". It does not evaluate the test: an author who tests a path knows that it may be missing.
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

// prefixes returns the path with each of the last steps, and all paths that lead there.
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

// under infers the type of a part for which more paths are known to exist.
func (in *inspector) under(more []string, e ast.Expr, s *scope) valueType {
	before := in.sure
	in.sure = slices.Concat(before, more)
	out := in.infer(e, s)
	in.sure = before
	return out
}

// operands infers the arguments of a call. For && and ||, one operand may make sure that a path of the other
// exists: CEL evaluates both in any order, and ignores an error of one if the other decides.
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

// mostDoubts limits how many unset fields are reported for one expression or template.
const mostDoubts = 20

// unsure warns of an optional field of the object when nothing makes sure that it is set. It does not warn of spec
// and status themselves, which all objects have although many schemas do not require them, and not of metadata,
// where selectors may require fields. It does not warn for built-in kinds, because their schemas lack defaults.
func (in *inspector) unsure(e, of ast.Expr, t valueType, name string) {
	fields, known := t.fields.(*schemaFields)
	way, parent := described(e), described(of)
	switch {
	case in.schemas.Unset, in.schemas.UnsetStatus && strings.HasPrefix(parent+".", expr.Self+".status."), in.schemas.Kind.Own, !known, len(in.doubted) >= mostDoubts:
		return
	case !strings.HasPrefix(parent, expr.Self+".") || strings.HasPrefix(parent, expr.Self+".metadata") || !fields.optional(name):
		return
	case slices.Contains(in.sure, way), slices.ContainsFunc(prefixes(parent, strings.TrimPrefix(way, parent)), in.isDoubted):
		return
	}
	in.doubted = append(in.doubted, way)
	instead, ask := optionally(way, parent, name)
	_, _, begins := in.program.Let(e)
	in.doubts = append(in.doubts, expr.Issue{Place: in.program.Place(e), Message: begins + fmt.Sprintf(
		"%s need not be set, and nothing makes sure that it is: write %s.orValue(…), or ask %s before", way, instead, ask)})
}

// absent warns of a field of a child as it is before an apply, when nothing makes sure that the child exists: before the first
// apply it does not.
func (in *inspector) absent(e, of ast.Expr, s *scope) {
	child, name, how := expr.Selection(of)
	if how == "" || child.Kind() != ast.IdentKind || strings.TrimPrefix(child.AsIdent(), ".") != expr.Current || in.schemas.Current == nil {
		return
	}
	way, parent := described(e), described(of)
	_, macros := s.find(expr.Current)
	if macros || len(in.doubted) >= mostDoubts || slices.Contains(in.sure, way) || in.isDoubted(way) {
		return
	}
	in.doubted = append(in.doubted, way)
	_, field, _ := expr.Selection(e)
	instead, ask := optionally(way, parent, field)
	in.doubts = append(in.doubts, expr.Issue{Place: in.program.Place(e), Message: fmt.Sprintf(
		"child %s is not there before it was made: write %s.orValue(…), or ask %s before", name, instead, ask)})
}

// optionally writes a field of a parent as an optional one, and the question whether it is there.
func optionally(way, parent, name string) (instead, ask string) {
	if way != parent+"."+name {
		return fmt.Sprintf("%s[?'%s']", parent, name), fmt.Sprintf("'%s' in %s", name, parent)
	}
	return fmt.Sprintf("%s.?%s", parent, name), fmt.Sprintf("has(%s)", way)
}

func (in *inspector) isDoubted(way string) bool { return slices.Contains(in.doubted, way) }

// optional reports whether a field of the schema may be unset and has no default.
func (f *schemaFields) optional(name string) bool {
	p, named := f.schema.Properties[name]
	return named && p.Default == nil && !slices.Contains(f.schema.Required, name)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package check checks expressions and templates against schemas, before they run.
package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Program checks an expression against schemas and the names of children and relations. The error is an
// [expr.Error].
//
// It walks CEL's tree and infers the type of each part at run time. It does not use CEL's own checker again: with
// Kubernetes' types for schemas, that rejects much that is valid here, where objects are plain maps, and times and
// bytes are text. Each reported expression fails, or is never true, for every object that the schema allows.
func Program(p *expr.Program, s shape.Schemas) error {
	_, _, err := infer(p, s, nil)
	return err
}

// infer also returns the type of the result, and the doubted paths, including the given ones.
func infer(p *expr.Program, s shape.Schemas, doubted []string) (valueType, []string, error) {
	in := &inspector{program: p, schemas: s, sure: s.Sure, doubted: doubted}
	result := in.infer(p.AST().Expr(), nil)
	in.leftOut()
	if p.IsPredicate() && !result.may(isBool) {
		in.issueAt(expr.Place{Line: 1, Column: 1}, "the result is %s, want true or false", result.kinds)
	}
	switch {
	case p.IsMoment() && !isTextOr(isTime, result):
		in.issueAt(expr.Place{Line: 1, Column: 1}, "%s", expr.WantMoment(result.kinds.String()))
	case p.IsSpan() && !isTextOr(isDuration, result):
		in.issueAt(expr.Place{Line: 1, Column: 1}, "%s", expr.WantSpan(result.kinds.String()))
	}
	if len(in.issues)+len(in.doubts) > 0 {
		return result, in.doubted, p.Fault(in.issues, in.doubts)
	}
	return result, in.doubted, nil
}

// isTextOr reports whether a value may be of a kind, text, or nothing.
func isTextOr(k kinds, t valueType) bool {
	if t.kinds == isOptional {
		t = t.inner()
	}
	return t.may(k | isText | isNull | isOptional)
}

// inspector infers the types of an expression's parts.
type inspector struct {
	program *expr.Program
	schemas shape.Schemas
	issues  []expr.Issue
	doubts  []expr.Issue
	// sure are the paths in the object that exist at the current part, doubted those that are reported as doubtful.
	sure, doubted []string
}

// scope is a variable of a macro and those around it.
type scope struct {
	name  string
	of    valueType
	outer *scope
}

func (s *scope) find(name string) (valueType, bool) {
	for ; s != nil; s = s.outer {
		if s.name == name {
			return s.of, true
		}
	}
	return valueType{}, false
}

// issue notes a fault of a part of the expression. A fault inside a let is noted at the place of the let. It is noted at the use only if the let alone is correct.
func (in *inspector) issue(of ast.Expr, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	let, program, begins := in.program.Let(of)
	if let != nil && in.reported(let, program, message) {
		return
	}
	in.issueAt(in.program.Place(of), "%s", begins+message)
}

func (in *inspector) issueAt(at expr.Place, format string, args ...any) {
	if len(in.issues) > expr.MostIssues {
		return // the limit is reached
	}
	i := expr.Issue{Place: at, Message: fmt.Sprintf(format, args...)}
	if !slices.Contains(in.issues, i) { // a macro may repeat it
		in.issues = append(in.issues, i)
	}
}

// infer returns the type of a part, and notes its faults.
func (in *inspector) infer(e ast.Expr, s *scope) valueType {
	switch e.Kind() {
	case ast.IdentKind:
		return in.variable(e, s)
	case ast.SelectKind:
		selection := e.AsSelect()
		operand := in.infer(selection.Operand(), s)
		out := in.member(e, selection.Operand(), operand, selection.FieldName())
		if selection.IsTestOnly() {
			return only(isBool)
		}
		in.parameter(e, selection, s)
		in.unsure(e, selection.Operand(), operand, selection.FieldName())
		in.absent(e, selection.Operand(), s)
		return out
	case ast.CallKind:
		return in.call(e, s)
	case ast.ListKind:
		return in.list(e.AsList(), s)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			in.infer(entry.AsMapEntry().Key(), s)
			in.infer(entry.AsMapEntry().Value(), s)
		}
		return only(isMap)
	case ast.ComprehensionKind:
		return in.loop(e, s)
	default:
		return in.static(e)
	}
}

// static returns the type that CEL knows without schemas.
func (in *inspector) static(e ast.Expr) valueType { return ofCEL(in.program.AST().GetType(e.ID())) }

func (in *inspector) variable(e ast.Expr, s *scope) valueType {
	name := strings.TrimPrefix(e.AsIdent(), ".")
	if t, found := s.find(name); found {
		return t
	}
	if why, without := in.schemas.Without[name]; without {
		in.issue(e, "%s %s", name, why)
		return unknown()
	}
	if fields := in.named(name); fields != nil {
		return valueType{kinds: isMap, fields: fields}
	}
	if name == expr.Self && in.schemas.Self.Schema != nil {
		return typeOf(in.schemas.Self.Schema, true)
	}
	if shape, known := in.schemas.Vars[name]; known {
		return typeOfShape(shape)
	}
	return in.static(e)
}

// named returns the fields of a variable that has its values by names; nil if it has not, or if the names are not known.
func (in *inspector) named(variable string) fieldSet {
	known := in.schemas
	switch {
	case variable == expr.Children && known.Children != nil:
		return &namedFields{word: "child", shapes: known.Children}
	case variable == expr.Current && known.Current != nil:
		return &namedFields{word: "child of this handler", shapes: known.Current, byKey: true}
	case variable == expr.Related && known.Related != nil:
		return &namedFields{word: "relation", shapes: known.Related}
	case variable == expr.Indexes && known.Indexes != nil:
		return &namedFields{word: "index", shapes: known.Indexes, keyed: true}
	case variable == expr.Handlers && known.Handlers != nil:
		return &handlerFields{ids: known.Handlers}
	}
	return nil
}

// parameter reports an unknown parameter, unless the expression tests its existence.
func (in *inspector) parameter(e ast.Expr, selection ast.SelectExpr, s *scope) {
	of, name := selection.Operand(), selection.FieldName()
	if in.schemas.Params == nil || in.schemas.Params[name] || of.Kind() != ast.IdentKind || strings.TrimPrefix(of.AsIdent(), ".") != expr.Params {
		return
	}
	_, macros := s.find(expr.Params)
	switch asked := slices.Contains(in.sure, expr.Params+"."+name); {
	case macros || asked:
	case in.part(e).IsParameter(name):
		in.issue(e, "unknown parameter %q of a Go function: that of the part is a variable (write %s)", name, name)
	case len(in.schemas.Params) == 0:
		in.issue(e, "unknown parameter %q: the handler has no with (want with: {%s: …})", name, name)
	default:
		in.issue(e, "%s", expr.Unknown("parameter", name, "", slices.Sorted(maps.Keys(in.schemas.Params))))
	}
}

// member returns the type of a field of a value. At is the part with the field's name.
func (in *inspector) member(at, of ast.Expr, t valueType, name string) valueType {
	if t.kinds == isOptional {
		return optional(in.member(at, of, t.inner(), name))
	}
	if !t.may(isMap | isOptional | isOther) {
		in.issue(at, "%s has no field %q", in.called(of, t), name)
		return unknown()
	}
	if t.fields == nil || t.kinds&^isNull != isMap {
		return unknown()
	}
	field, found := t.fields.field(name)
	if !found {
		in.issue(at, "%s", in.unknownField(of, t.fields, name))
	}
	return field
}

func (in *inspector) unknownField(of ast.Expr, fields fieldSet, name string) string {
	if from, ok := fields.(*keptFields); ok {
		return from.lack(name)
	}
	if from, ok := fields.(*schemaFields); ok {
		if plain, escaped := from.unescaped(name); escaped {
			return fmt.Sprintf("unknown field %q%s (write ['%s'])", name, in.within(of, fields), plain)
		}
	}
	names := fields.names()
	if _, named := fields.(*namedFields); named {
		names = in.part(of).PartNames(names)
	}
	return expr.Unknown(fields.what(), name, in.within(of, fields), names)
}

// part returns the program that a part of the expression belongs to: the inspected program, or the program of a let.
func (in *inspector) part(e ast.Expr) *expr.Program {
	if _, let, _ := in.program.Let(e); let != nil {
		return let
	}
	return in.program
}

// within names the object that should have the field.
func (in *inspector) within(of ast.Expr, fields fieldSet) string {
	if described := described(of); fields.what() == "field" && described != "" {
		return " in " + described
	}
	return ""
}

// called describes a value by its kind and by its text in the expression.
func (in *inspector) called(e ast.Expr, t valueType) string {
	if described := described(e); described != "" {
		return fmt.Sprintf("%s (%s)", t.kinds, described)
	}
	return t.kinds.String()
}

// described returns the text of an expression that is a path in an object; empty for others.
func described(e ast.Expr) string {
	if e.Kind() == ast.IdentKind && !strings.ContainsAny(e.AsIdent(), "@#") { // not a macro's own variable
		return strings.TrimPrefix(e.AsIdent(), ".")
	}
	operand, name, how := expr.Selection(e)
	if how == "" || how == "." && e.AsSelect().IsTestOnly() {
		return ""
	}
	switch of := described(operand); {
	case of == "":
		return ""
	case how == operators.Index || how == operators.OptIndex:
		return fmt.Sprintf("%s['%s']", of, name)
	default:
		return of + "." + name
	}
}

func (in *inspector) list(l ast.ListExpr, s *scope) valueType {
	var element valueType
	for i, e := range l.Elements() {
		t := in.infer(e, s)
		if l.IsOptional(int32(i)) && t.kinds == isOptional {
			t = t.inner()
		}
		element = join(element, t)
	}
	return listOf(element)
}

// loop infers the comprehension that a macro expands to.
func (in *inspector) loop(e ast.Expr, s *scope) valueType {
	c := e.AsComprehension()
	over := in.infer(c.IterRange(), s)
	if !over.may(isList | isMap) {
		in.issue(e, "want a list or a map, found %s", in.called(c.IterRange(), over))
		over = unknown()
	}
	first, second := iterated(over, c.HasIterVar2())
	gathered := in.infer(c.AccuInit(), s)
	inside := &scope{c.IterVar(), first, &scope{c.AccuVar(), gathered, s}}
	if c.HasIterVar2() {
		inside = &scope{c.IterVar2(), second, inside}
	}
	gathered = join(gathered, in.infer(c.LoopStep(), inside))
	return in.infer(c.Result(), &scope{c.AccuVar(), gathered, s})
}

// iterated returns the types of a macro's variables.
func iterated(over valueType, two bool) (first, second valueType) {
	switch {
	case over.kinds == isList && two:
		return only(isInt), over.inner()
	case over.kinds == isList:
		return over.inner(), unknown()
	case over.kinds == isMap && over.fields != nil:
		return only(isText), over.fields.any()
	}
	return unknown(), unknown()
}

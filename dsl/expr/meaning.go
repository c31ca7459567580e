// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// check computes the types of an expression, and its faults. The error is an [Error].
func (c *Compiler) check(s source, parsed *cel.Ast) (*cel.Ast, error) {
	checked, issues := c.env.Check(parsed)
	if issues.Err() == nil {
		return checked, nil
	}
	m := c.typed(parsed)
	parts, moot := m.parts()
	if found := m.faults(s, issues.Errors(), parts, moot); len(found) > 0 {
		return nil, s.fault(found...)
	}
	proto, err := ast.ToProto(m.ast)
	if err == nil {
		checked, err = cel.CheckedExprToAstWithSource(proto, parsed.Source())
	}
	if err != nil { // cannot happen: a checked expression converts
		return nil, s.fault(Issue{Place{1, 1}, oneLine(err.Error())})
	}
	return checked, nil
}

// faults explains why an expression that parses does not compile. CEL's checker says which parts are faulty; the
// reason follows from these parts and their types. If it does not, the checker is quoted. If CEL wants values of
// one kind and the kind of one of them is only known at run time, that is not a fault.
func (m *meaning) faults(s source, errs []*common.Error, parts map[int64]ast.NavigableExpr, moot map[int64]bool) []Issue {
	var issues []Issue
	odd := m.odd(parts)
	for _, err := range errs {
		e, found := parts[err.ExprID]
		switch {
		case !found:
			issues = append(issues, Issue{placeOfError(err), oneLine(err.Message)})
		case m.fits && element(e): // odd elements are reported below
		case m.named[err.ExprID] != "":
			issues = append(issues, Issue{placeOf(s.text, m.ast.SourceInfo(), e.AsCall().Target()), m.explain(e)})
		case !moot[err.ExprID]:
			issues = append(issues, Issue{placeOf(s.text, m.ast.SourceInfo(), e), cmp.Or(m.explain(e), oneLine(err.Message))})
		}
	}
	for _, o := range odd {
		issues = append(issues, Issue{placeOf(s.text, m.ast.SourceInfo(), o.part), m.explainOdd(o)})
	}
	return issues
}

// typed returns the expression with the types that are known in spite of its faults. Faulty parts have the error
// type.
func (c *Compiler) typed(parsed *cel.Ast) *meaning {
	env, err := checker.NewEnv(c.env.Container, c.env.CELTypeProvider(), checker.CrossTypeNumericComparisons(true))
	if err == nil {
		err = errors.Join(env.AddIdents(c.env.Variables()...), env.AddFunctions(slices.Collect(maps.Values(c.functions))...))
	}
	if err != nil { // cannot happen: the compiler has used this environment
		return &meaning{compiler: c, ast: parsed.NativeRep()}
	}
	typed, errs := checker.Check(parsed.NativeRep(), parsed.Source(), env)
	return &meaning{compiler: c, ast: typed, fits: len(errs.GetErrors()) == 0}
}

// meaning is an expression that does not compile, with its types.
type meaning struct {
	compiler *Compiler
	ast      *ast.AST
	// named are functions of libraries, with the library, whose operand is not a variable.
	named map[int64]string
	// fits: all types fit, so the fault is another one.
	fits bool
}

// parts returns the parts of the expression by id, and those whose faults follow from others: a mistyped macro
// leaves its variables undeclared.
func (m *meaning) parts() (all map[int64]ast.NavigableExpr, moot map[int64]bool) {
	all, moot = map[int64]ast.NavigableExpr{}, map[int64]bool{}
	m.named = map[int64]string{}
	for _, e := range ast.MatchDescendants(ast.NavigateAST(m.ast), ast.AllMatcher()) {
		all[e.ID()] = e
		m.functionBehind(e, moot)
		if e.Kind() != ast.CallKind || m.compiler.functions[e.AsCall().FunctionName()] != nil {
			continue
		}
		meant, _ := words.Nearest(e.AsCall().FunctionName(), m.compiler.callable)
		if m.compiler.macros[meant] == nil {
			continue
		}
		for _, arg := range e.AsCall().Args() {
			ast.PreOrderVisit(arg, ast.NewExprVisitor(func(e ast.Expr) { moot[e.ID()] = true }))
		}
	}
	return all, moot
}

// functionBehind finds the fault in a call such as json.parse(x), where json is not a variable: either the
// function's name is mistyped, or the name before it is wrong and the function's fault follows from that.
func (m *meaning) functionBehind(e ast.NavigableExpr, moot map[int64]bool) {
	if e.Kind() != ast.CallKind || !e.AsCall().IsMemberFunction() || m.compiler.functions[e.AsCall().FunctionName()] != nil {
		return
	}
	root := e.AsCall().Target()
	for {
		operand, _, how := Selection(root)
		if how != "." {
			break
		}
		root = operand
	}
	if root.Kind() == ast.CallKind && moot[root.ID()] {
		moot[e.ID()] = true // the fault of the name before it follows, too
	}
	if root.Kind() != ast.IdentKind || m.ast.GetType(root.ID()).Kind() != types.ErrorKind {
		return
	}
	name := written(root.AsIdent(), nil)
	if e.AsCall().Target().ID() == root.ID() {
		if _, near := words.Nearest(name+"."+e.AsCall().FunctionName(), m.compiler.libraries()); near {
			m.named[e.ID()], moot[root.ID()] = name+"."+e.AsCall().FunctionName(), true
			return
		}
	}
	moot[e.ID()] = true
}

// explain describes the fault of a part; empty if it is not known.
func (m *meaning) explain(e ast.NavigableExpr) string {
	faulty := e.Type().Kind() == types.ErrorKind
	switch {
	case e.Kind() == ast.IdentKind && faulty:
		return unknownName("variable", e.AsIdent(), m.compiler.named())
	case e.Kind() == ast.CallKind && faulty:
		if name := m.named[e.ID()]; name != "" {
			return unknownName("function", name, m.compiler.libraries())
		}
		return m.wrongCall(e.AsCall())
	case e.Kind() == ast.SelectKind && e.Type().Kind() == types.DynKind: // the checker continues with this type
		return m.kind(e.AsSelect().Operand()) + " has no fields"
	}
	around, _ := e.Parent()
	switch {
	case around == nil:
	case around.Kind() == ast.ComprehensionKind && around.AsComprehension().IterRange().ID() == e.ID():
		return "want a list or a map, found " + m.kind(e)
	case around.Kind() == ast.CallKind:
		return m.misused(e, around.AsCall().FunctionName())
	}
	return ""
}

// misused says why a valid argument is not accepted by a function or an operator.
func (m *meaning) misused(e ast.Expr, function string) string {
	switch function {
	case operators.LogicalAnd, operators.LogicalOr:
		return "want true or false, found " + m.kind(e)
	case "duration":
		return "this is no duration (want one as 1h30m0s)"
	case "timestamp":
		return "this is no time (want one as 2030-01-31T12:00:00Z)"
	case "matches":
		return "this is no regular expression"
	}
	return ""
}

// wrongCall says why a function or an operator does not accept its arguments.
func (m *meaning) wrongCall(call ast.CallExpr) string {
	name, args, behind := call.FunctionName(), call.Args(), call.IsMemberFunction()
	overloads := m.compiler.functions[name].OverloadDecls()
	if len(overloads) == 0 {
		return m.unknownFunction(name, len(args))
	}
	var counts []int
	for _, o := range overloads {
		switch {
		case o.IsMemberFunction() != behind:
		case behind:
			counts = append(counts, len(o.ArgTypes())-1) // without the receiver
		default:
			counts = append(counts, len(o.ArgTypes()))
		}
	}
	switch {
	case len(counts) == 0 && behind:
		return fmt.Sprintf("%s() takes its value as an argument: write %s(%s)", name, name, m.text(call.Target()))
	case len(counts) == 0:
		return fmt.Sprintf("%s() stands behind its value: write %s", name, m.behind(name, args))
	case !slices.Contains(counts, len(args)):
		return wrongCount(name, counts, len(args))
	case name == operators.Conditional:
		return m.wrongCondition(args[0], args[1], args[2])
	case behind:
		args = slices.Concat([]ast.Expr{call.Target()}, args)
	}
	var given []string
	for _, arg := range args {
		given = append(given, m.kind(arg))
	}
	return CannotUse(name, given)
}

// behind writes a call as a method of its first argument, if that is a path in an object.
func (m *meaning) behind(name string, args []ast.Expr) string {
	if len(args) == 0 || m.text(args[0]) == "x" || args[0].Kind() == ast.LiteralKind {
		return "x." + name + "(…)"
	}
	var rest []string
	for _, arg := range args[1:] {
		if text := m.text(arg); text != "x" {
			rest = append(rest, text)
		} else {
			rest = append(rest, "…")
		}
	}
	return fmt.Sprintf("%s.%s(%s)", m.text(args[0]), name, strings.Join(rest, ", "))
}

// text returns the text of a part that is a path in an object, a short text or a number; for others, x.
func (m *meaning) text(e ast.Expr) string {
	switch operand, name, how := Selection(e); {
	case e.Kind() == ast.IdentKind:
		return e.AsIdent()
	case how == "." && !e.AsSelect().IsTestOnly():
		if of := m.text(operand); of != "x" {
			return written(of, []string{name})
		}
	case e.Kind() == ast.LiteralKind:
		switch value := e.AsLiteral().Value().(type) {
		case string:
			if len(value) < 20 && !strings.ContainsAny(value, "'\\\n") {
				return "'" + value + "'"
			}
		case int64, bool:
			return fmt.Sprint(value)
		}
	}
	return "x"
}

// unknownFunction is the message for an unknown function, or for a macro with wrong arguments.
func (m *meaning) unknownFunction(name string, given int) string {
	if counts := m.compiler.macros[name]; counts != nil {
		return wrongCount(name, counts, given)
	}
	return cmp.Or(hint(name), unknownName("function", name, m.compiler.callable))
}

// wrongCount is the message for a wrong number of arguments.
func wrongCount(function string, counts []int, given int) string {
	var words []string
	for _, n := range slices.Compact(slices.Sorted(slices.Values(counts))) {
		words = append(words, fmt.Sprint(n))
	}
	arguments := "arguments"
	if slices.Equal(words, []string{"1"}) {
		arguments = "argument"
	}
	return fmt.Sprintf("%s wants %s %s, not %d", FunctionNamed(function), strings.Join(words, " or "), arguments, given)
}

// wrongCondition says why the parts of a ?: do not fit together. It may come from a macro.
func (m *meaning) wrongCondition(condition, a, b ast.Expr) string {
	switch m.ast.GetType(condition.ID()).Kind() {
	case types.BoolKind, types.DynKind, types.ErrorKind:
	default:
		return "want true or false, found " + m.kind(condition)
	}
	one, other := m.kind(a), m.kind(b)
	if one == other { // the types of their elements differ
		one, other = m.ast.GetType(a.ID()).String(), m.ast.GetType(b.ID()).String()
	}
	return fmt.Sprintf("both outcomes of ?: must be of one kind, not %s and %s (dyn(…) around each lifts that)", one, other)
}

// kind describes the value of a part to people.
func (m *meaning) kind(e ast.Expr) string { return named(m.ast.GetType(e.ID()).TypeName()) }

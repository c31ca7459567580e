// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// meaningError says why a text that can be read makes no sense.
func (c *Compiler) meaningError(text string, parsed *ast.AST, errs []*common.Error) *Error {
	m := &meaning{compiler: c, text: []rune(text), parts: map[int64]ast.Expr{}, moot: map[int64]bool{}}
	ast.PreOrderVisit(parsed.Expr(), ast.NewExprVisitor(func(e ast.Expr) { m.parts[e.ID()] = e }))
	out := &Error{Text: text}
	for _, err := range errs {
		if m.moot[err.ExprID] || len(out.Issues) > mostIssues {
			continue
		}
		at := placeAt(err.Location)
		if where, found := parsed.SourceInfo().GetOffsetRange(err.ExprID); found {
			at = placeAtOffset(m.text, m.start(err, int(where.Start)))
		}
		out.Issues = append(out.Issues, Issue{at.line, at.column, m.message(err)})
	}
	out.Issues = told(out.Issues)
	return out
}

// meaning puts the words of CEL's checker into those of people who write YAML.
type meaning struct {
	compiler *Compiler
	text     []rune
	parts    map[int64]ast.Expr
	// moot are the parts whose faults follow from one that was reported.
	moot map[int64]bool
}

var (
	undeclared   = regexp.MustCompile(`^undeclared reference to '(.*)' \(in container`)
	noOverload   = regexp.MustCompile(`^found no matching overload for '(.*?)' applied to '(.*)'$`)
	wantedType   = regexp.MustCompile(`^expected type '(.*)' but found '(.*)'$`)
	noFields     = regexp.MustCompile(`^type '(.*)' does not support field selection$`)
	notLoopable  = regexp.MustCompile(`^expression of type '(.*)' cannot be range of a comprehension`)
	badConstants = regexp.MustCompile(`^invalid (duration|timestamp|matches) argument`)
)

// start returns where a fault stands: CEL knows the brackets of calls and the dots of fields.
func (m *meaning) start(err *common.Error, offset int) int {
	e := m.parts[err.ExprID]
	switch {
	case e == nil:
	case e.Kind() == ast.CallKind:
		return nameBefore(m.text, offset)
	case e.Kind() == ast.SelectKind:
		if at := fieldFrom(m.text, offset, e.AsSelect().FieldName()); at >= 0 {
			return at
		}
	}
	return offset
}

func (m *meaning) message(err *common.Error) string {
	if found := undeclared.FindStringSubmatch(err.Message); found != nil {
		return m.undeclared(m.parts[err.ExprID], found[1])
	}
	if found := noOverload.FindStringSubmatch(err.Message); found != nil {
		return m.overload(found[1], found[2])
	}
	if found := wantedType.FindStringSubmatch(err.Message); found != nil {
		if found[1] == "bool" {
			return fmt.Sprintf("want true or false, found %s", named(found[2]))
		}
		one, other := namedApart(found[1], found[2])
		return fmt.Sprintf("a list or map has values of one kind, not %s and %s (dyn(…) around each lifts that)", one, other)
	}
	if found := noFields.FindStringSubmatch(err.Message); found != nil {
		return named(found[1]) + " has no fields"
	}
	if found := notLoopable.FindStringSubmatch(err.Message); found != nil {
		return "want a list or a map, found " + named(found[1])
	}
	if found := badConstants.FindStringSubmatch(err.Message); found != nil {
		return map[string]string{
			"duration":  "this is no duration (want one as 1h30m0s)",
			"timestamp": "this is no time (want one as 2030-01-31T12:00:00Z)",
			"matches":   "this is no regular expression",
		}[found[1]]
	}
	message, _, _ := strings.Cut(err.Message, " (in container")
	return strings.Join(strings.Fields(message), " ")
}

// namedApart describes two types, with what lists and maps have in them where they would be called alike.
func namedApart(a, b string) (one, other string) {
	one, other = named(a), named(b)
	if one != other {
		return one, other
	}
	return one + holding(a), other + holding(b)
}

// holding says what is in a list or map.
func holding(typeName string) string {
	_, inner, found := strings.Cut(strings.TrimSuffix(typeName, ")"), "(")
	if parts := split(inner); found && len(parts) > 0 {
		last := parts[len(parts)-1]
		one := named(last)
		if several, counts := strings.CutPrefix(one, "a "); counts {
			one = several + "s"
		}
		return " of " + one + holding(last)
	}
	return ""
}

// undeclared says that a name is not known.
func (m *meaning) undeclared(e ast.Expr, name string) string {
	if e == nil || e.Kind() != ast.CallKind {
		return unknownName("variable", name, m.variables())
	}
	macros := m.macros()
	if counts := macros[name]; counts != nil {
		m.ignore(e.AsCall().Args())
		return fmt.Sprintf("%s() wants %s, not %d", name, counted(counts), len(e.AsCall().Args()))
	}
	if name == "not" {
		return hint(name)
	}
	names := append(m.functions(), slices.Collect(maps.Keys(macros))...)
	slices.Sort(names)
	if meant, near := words.Nearest(name, names); near && macros[meant] != nil {
		m.ignore(e.AsCall().Args())
	}
	return unknownName("function", name, names)
}

// ignore makes the faults of parts moot: a macro that is not one leaves its variables undeclared.
func (m *meaning) ignore(parts []ast.Expr) {
	for _, part := range parts {
		ast.PreOrderVisit(part, ast.NewExprVisitor(func(e ast.Expr) { m.moot[e.ID()] = true }))
	}
}

// overload says why a function does not take its arguments, written as CEL does: (int, string), or
// string.(int) for one that is written behind its first.
func (m *meaning) overload(function, signature string) string {
	first, rest, behind := strings.Cut(signature, ".(")
	var given []string
	if behind = behind && !strings.HasPrefix(signature, "("); behind {
		given, signature = []string{first}, "("+rest
	}
	given = append(given, split(strings.TrimSuffix(strings.TrimPrefix(signature, "("), ")"))...)
	if message := m.style(function, len(given), behind); message != "" {
		return message
	}
	if function == operators.Conditional && len(given) == 3 && given[0] == "bool" {
		one, other := namedApart(given[1], given[2])
		return fmt.Sprintf("both outcomes of ?: must be of one kind, not %s and %s (dyn(…) around each lifts that)", one, other)
	}
	for i, t := range given {
		given[i] = named(t)
	}
	return cannotUse(function, given)
}

// style says that a function takes another number of arguments, or that it is not written behind
// its first one, or only there.
func (m *meaning) style(function string, given int, behind bool) string {
	var counts []int
	otherwise := false
	for _, o := range m.compiler.functions[function].OverloadDecls() {
		if o.IsMemberFunction() == behind {
			counts = append(counts, len(o.ArgTypes()))
		}
		otherwise = otherwise || o.IsMemberFunction() != behind && len(o.ArgTypes()) == given
	}
	switch {
	case slices.Contains(counts, given):
		return ""
	case len(counts) == 0:
		return m.otherStyle(function, behind, otherwise)
	}
	if behind { // the value in front is none in the eyes of people
		given--
		for i := range counts {
			counts[i]--
		}
	}
	return fmt.Sprintf("%s wants %s, not %d", functionNamed(function), counted(counts), given)
}

// otherStyle says that a function is only written in the other way. Otherwise means that it is with
// as many arguments.
func (m *meaning) otherStyle(function string, behind, otherwise bool) string {
	known := len(m.compiler.functions[function].OverloadDecls()) > 0
	switch {
	case behind && otherwise:
		return fmt.Sprintf("%s() takes its value as an argument: %s(x)", function, function)
	case !behind && (otherwise || known && isWord([]rune(function)[0])):
		return fmt.Sprintf("%s() stands behind its value: x.%s(…)", function, function)
	default:
		return ""
	}
}

// split splits a list of types at its outermost commas.
func split(list string) (out []string) {
	depth, from := 0, 0
	for i, c := range list {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(list[from:i]))
				from = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(list[from:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// counted writes how many arguments there may be.
func counted(counts []int) string {
	counts = slices.Compact(slices.Sorted(slices.Values(counts)))
	words := make([]string, len(counts))
	for i, n := range counts {
		words[i] = fmt.Sprint(n)
	}
	if len(counts) == 1 && counts[0] == 1 {
		return "1 argument"
	}
	return strings.Join(words, " or ") + " arguments"
}

func (m *meaning) variables() []string {
	return append([]string{Self, Old, Diff, Cause, Event, Params, Now, Children, Related}, m.compiler.more...)
}

// functions returns the names that people can write, which excludes operators.
func (m *meaning) functions() (out []string) {
	for name := range m.compiler.functions {
		if isWord([]rune(name)[0]) && name[0] != '_' && !strings.Contains(name, "@") {
			out = append(out, name)
		}
	}
	return out
}

// macros returns how many arguments each macro takes.
func (m *meaning) macros() map[string][]int {
	out := map[string][]int{}
	for _, macro := range m.compiler.env.Macros() {
		out[macro.Function()] = append(out[macro.Function()], macro.ArgCount())
	}
	return out
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Stored says where an expression reads what a template has made before.
type Stored struct {
	// Variable has it, and Way is the path of the whole template's value in the variable: for the template of a child,
	// current and the child's name.
	Variable string
	Way      []string
	// Keyed: there are several, and the variable [Key] follows the path.
	Keyed bool
	// Secret: it is a Secret, so the API server has the texts of stringData as base64 in data.
	Secret bool
	// Names are the fields by which the whole value is found again.
	Names [][]string
}

// Once returns a fault for each generate() whose value would not be found again, so that each rendering would make
// another one. It must be in the fallback of what its own field has, as in current.secret.?data.?password.orValue(…)
// for data.password. There the value may be chosen by a condition, and be none to make another one. The errors are
// *shape.Misfit.
func (t *Template) Once(of Stored) []error {
	o := &once{Stored: of}
	o.node(t, nil, true)
	return o.faults
}

type once struct {
	Stored
	faults []error
}

// node checks a part of the template for a field. Found: its value can be found again.
func (o *once) node(t *Template, field []string, found bool) {
	for _, p := range t.Pieces {
		if p.Program == nil {
			continue
		}
		root := p.Program.ast.Expr()
		if issues := o.value(p.Program, root, field, found && len(t.Pieces) == 1); len(issues) > 0 {
			o.faults = append(o.faults, Faults(t.Path, p.Program.Fault(issues, nil))...)
		}
	}
	for i := range t.Entries {
		e := &t.Entries[i]
		name, _ := e.Key.Plain.(string)
		o.node(&e.Key, nil, false)
		o.node(&e.Value, append(slices.Clip(field), name), found && len(e.Key.Pieces) == 0)
	}
	for i := range t.List {
		o.node(&t.List[i], nil, false)
	}
}

// value checks a part of an expression that gives the value of a field.
func (o *once) value(p *Program, e ast.Expr, field []string, found bool) (out []Issue) {
	call := generation(e)
	switch {
	case call == nil:
		return nil
	case !found:
		const message = "generate() makes a value once, so it is for a field of a map, where the value is found again: " +
			"not for an element of a list, a key or a part of a text, which can take the value from such a field"
		return []Issue{{p.Place(call), message}}
	case slices.ContainsFunc(o.Names, func(name []string) bool { return slices.Equal(name, field) }):
		const message = "generate() cannot make what an object is found by: random(5, self.metadata.uid) gives the same letters each time"
		return []Issue{{p.Place(call), message}}
	case e.Kind() == ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			name, constant := ConstantText(entry.AsMapEntry().Key())
			out = append(out, o.value(p, entry.AsMapEntry().Key(), nil, false)...)
			out = append(out, o.value(p, entry.AsMapEntry().Value(), append(slices.Clip(field), name), constant)...)
		}
		return out
	case e.Kind() == ast.CallKind:
		switch c := e.AsCall(); c.FunctionName() {
		case operators.Conditional:
			if generation(c.Args()[0]) == nil {
				return append(o.value(p, c.Args()[1], field, true), o.value(p, c.Args()[2], field, true)...)
			}
		case "orValue":
			if generation(c.Target()) == nil && o.keeps(c.Target(), field) {
				return nil
			}
		}
	}
	return []Issue{{p.Place(call), fmt.Sprintf(
		"generate() would make another value each time: write %s, which keeps the one that is there", o.form(p, e, field))}}
}

// keeps reports whether an optional value is that of a field, or none.
func (o *once) keeps(e ast.Expr, field []string) bool {
	if !o.decodes(field) {
		keeps, fits := o.kept(e, field)
		return keeps && fits
	}
	if o.is(e, field) {
		return false // it is in base64, and would be encoded again
	}
	reads := false
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) { reads = reads || o.is(e, field) }))
	return reads
}

// kept reports whether a part may be the value of the field, and whether it is nothing else.
func (o *once) kept(e ast.Expr, field []string) (keeps, fits bool) {
	if o.is(e, field) {
		return true, true
	}
	if e.Kind() != ast.CallKind {
		return false, false
	}
	var a, b ast.Expr
	switch c := e.AsCall(); c.FunctionName() {
	case "optional.none":
		return false, true
	case operators.Conditional:
		a, b = c.Args()[1], c.Args()[2]
	case "or":
		a, b = c.Target(), c.Args()[0]
	default:
		return false, false
	}
	first, fits := o.kept(a, field)
	second, fitsToo := o.kept(b, field)
	return first || second, fits && fitsToo
}

// decodes reports whether the API server has the text of a field in base64, under another key.
func (o *once) decodes(field []string) bool {
	return o.Secret && len(field) > 1 && field[0] == "stringData"
}

// stored returns the path at which a field is found in the variable.
func (o *once) stored(field []string) []string {
	out := slices.Clone(o.Way)
	if o.Keyed {
		out = append(out, AnyKey)
	}
	if o.decodes(field) {
		return append(append(out, "data"), field[1:]...)
	}
	return append(out, field...)
}

// is reports whether a part selects the stored value of a field.
func (o *once) is(e ast.Expr, field []string) bool {
	way, rooted := o.path(e)
	return rooted && slices.Equal(way, o.stored(field))
}

// path returns the steps from the variable to a part, with AnyKey for the variable key.
func (o *once) path(e ast.Expr) (way []string, rooted bool) {
	if e.Kind() == ast.IdentKind {
		return nil, strings.TrimPrefix(e.AsIdent(), ".") == o.Variable
	}
	if tested(e) {
		return nil, false
	}
	operand, name, how := Selection(e)
	if how == "" {
		var key ast.Expr
		if operand, key, how = computed(e); how == "" || key.Kind() != ast.IdentKind || key.AsIdent() != Key {
			return nil, false
		}
		name = AnyKey
	}
	way, rooted = o.path(operand)
	return append(way, name), rooted
}

// longestFallback limits the characters of an expression that is repeated in advice.
const longestFallback = 60

// form writes an expression that keeps the value of a field.
func (o *once) form(p *Program, e ast.Expr, field []string) string {
	var out strings.Builder
	out.WriteString(o.Variable)
	for i, step := range o.stored(field) {
		if i == 0 && len(o.Way) > 0 {
			step = p.compiler.lets.PartName(step)
		}
		switch sure := i == 0 && (o.Variable == Current || step == "metadata"); {
		case sure:
			fmt.Fprint(&out, ".", step)
		case o.Keyed && i == len(o.Way):
			fmt.Fprint(&out, "[?", Key, "]")
		case dsl.IsIdentifier(step):
			fmt.Fprint(&out, ".?", step)
		default:
			fmt.Fprintf(&out, "[?'%s']", step)
		}
	}
	if o.decodes(field) {
		out.WriteString(".optMap(v, unbase64(v))")
	}
	fallback := "…"
	whole := e.ID() == p.ast.Expr().ID() && !strings.Contains(p.text, "orValue")
	if whole && utf8.RuneCountInString(p.text) <= longestFallback {
		fallback = oneLine(p.text)
	}
	return out.String() + ".orValue(" + fallback + ")"
}

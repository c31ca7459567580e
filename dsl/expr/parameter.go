// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Parameter is what a part declares of a parameter.
type Parameter struct {
	// Schema is its type. Expressions of the part are compiled for values of this type. Nil: the type is not known.
	Schema *spec.Schema
	// Fits says why a value does not fit what is declared; nil if it does. It must not quote the value, which may be a
	// Secret's. It is asked for each value that an expression gives.
	Fits func(value any) error
}

// Parameters compiles the values of a part's parameters. Their expressions know the lets around the place that uses the part.
// Expressions of the part know the parameters, as lets, and none of the lets around: so a name of one file never hides one of
// another, and a part means the same wherever it is used. Parameters with faults are in the result, as by [Compiler.Lets].
func (c *Compiler) Parameters(around *Lets, given []Let) (*Lets, []LetFault) {
	m := &lets{out: &Lets{all: map[string]*let{}}, compiler: c}
	outside, broken := c.WithLets(around)
	for _, one := range given {
		if wrong := c.wrongName(parameterWord, nil, one.Name); wrong != nil {
			m.fault(one.Name, wrong)
			continue
		}
		l := &let{Let: one, kind: cel.DynType, used: &atomic.Bool{}, around: around}
		m.out.own, m.out.all[one.Name] = append(m.out.own, one.Name), l
		if broken != nil {
			m.fault(one.Name, broken)
			continue
		}
		defining := *outside
		defining.defines = true
		program, err := defining.Alone(one.Text)
		if err != nil {
			m.fault(one.Name, err)
			continue
		}
		l.program = program
		if one.Parameter != nil {
			l.kind = kindFor(one.Parameter.Schema)
		}
	}
	return m.out, m.faults
}

// kindFor returns the type of CEL for values of a schema. Where values of several types are allowed, or a number may be whole
// or not, it is known only when the expression runs.
func kindFor(s *spec.Schema) *cel.Type {
	if s == nil || len(s.Type) != 1 {
		return cel.DynType
	}
	switch s.Type[0] {
	case "string":
		return cel.StringType
	case "integer":
		return cel.IntType
	case "boolean":
		return cel.BoolType
	case "array":
		if s.Items != nil {
			return cel.ListType(kindFor(s.Items.Schema))
		}
	case "object":
		if s.AdditionalProperties != nil {
			return cel.MapType(cel.StringType, kindFor(s.AdditionalProperties.Schema))
		}
		return cel.MapType(cel.StringType, cel.DynType)
	}
	return cel.DynType
}

// unfit says why the value of a parameter does not fit; nil for other lets.
func (l *let) unfit(value ref.Val) error {
	if l.Parameter == nil || l.Parameter.Fits == nil {
		return nil
	}
	plain, err := plainValue(value, NewRoom(mostRendered))
	if err != nil {
		return err
	}
	return l.Parameter.Fits(plain)
}

// Optional reports whether the expression gives an optional value, as self.spec.?image does.
func (p *Program) Optional() bool {
	t := p.ast.GetType(p.ast.Expr().ID())
	return t.TypeName() == "optional_type"
}

// Expression returns a CEL expression that gives what the template gives. An optional value within a map or a list is left
// out where it is absent, as by [Template.Render].
func (t *Template) Expression() string {
	if len(t.Pieces) > 0 {
		return expressionOf(t.Pieces)
	}
	switch t.Plain.(type) {
	case map[string]any:
		var out []string
		for i := range t.Entries {
			e := &t.Entries[i]
			out = append(out, e.Value.optional()+e.Key.Expression()+": "+e.Value.element())
		}
		return "{" + strings.Join(out, ", ") + "}"
	case []any:
		var out []string
		for i := range t.List {
			out = append(out, t.List[i].optional()+t.List[i].element())
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	return Literal(t.Plain)
}

// optional is the sign in front of an element that may be left out.
func (t *Template) optional() string {
	if len(t.Pieces) == 1 && t.Pieces[0].Program.Optional() {
		return "?"
	}
	return ""
}

// element returns the expression of a value in a map or a list. Maps and lists of Kubernetes' CEL have values of one type.
func (t *Template) element() string {
	if t.optional() != "" {
		return t.Expression()
	}
	return "dyn(" + t.Expression() + ")"
}

// expressionOf joins the pieces of a text. A comment may end an expression, so its bracket closes in the next line.
func expressionOf(pieces []Piece) string {
	if len(pieces) == 1 {
		return "(" + pieces[0].Text + "\n)"
	}
	var out []string
	for _, p := range pieces {
		if p.Program == nil {
			out = append(out, Literal(p.Text))
		} else {
			out = append(out, "string("+p.Text+"\n)")
		}
	}
	return strings.Join(out, " + ")
}

// Literal returns the CEL expression of a plain JSON value, with int64 and float64 for numbers.
func Literal(value any) string {
	switch value := value.(type) {
	case nil:
		return "dyn(null)"
	case string:
		return strconv.Quote(value)
	case float64:
		text := strconv.FormatFloat(value, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0" // CEL has whole numbers of another type
		}
		return text
	case map[string]any:
		var out []string
		for name, element := range value {
			out = append(out, strconv.Quote(name)+": dyn("+Literal(element)+")")
		}
		slices.Sort(out)
		return "{" + strings.Join(out, ", ") + "}"
	case []any:
		var out []string
		for _, element := range value {
			out = append(out, "dyn("+Literal(element)+")")
		}
		return "[" + strings.Join(out, ", ") + "]"
	default:
		return fmt.Sprint(value)
	}
}

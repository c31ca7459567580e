// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Reads returns what the expression reads. An index that is worked out ends a path: then all that it may
// lead to is read. Of an expression that looks back (at old, or diff) it is not known that it reads nothing
// else; what never changes in an object, and what changes at each write, is left out.
func (p *Program) Reads() dsl.Reads {
	out := dsl.Reads{Children: p.Uses(Children), Related: p.Uses(Related), Only: !p.Uses(Old) && !p.Uses(Diff)}
	for _, path := range p.paths(Self) {
		if waited(path) {
			out.Paths = append(out.Paths, path)
		}
	}
	return out
}

// paths returns the fields of a variable that the expression leads through by names alone, in the order of
// the text: an empty path where it takes the variable in another way.
func (p *Program) paths(variable string) []dsl.Path {
	if !p.Uses(variable) {
		return nil
	}
	parsed, issues := p.compiler.env.Parse(p.text)
	if issues.Err() != nil { // it was compiled once: this does not happen
		return []dsl.Path{{}}
	}
	r := &reader{variable: variable}
	r.visit(parsed.NativeRep().Expr())
	return r.paths
}

// Reads returns what the template's expressions read.
func (t *Template) Reads() dsl.Reads { return ReadsOf(t.Programs()...) }

// ReadsOf returns what several expressions read.
func ReadsOf(programs ...*Program) dsl.Reads {
	out := dsl.Reads{Only: true}
	for _, p := range programs {
		out = out.And(p.Reads())
	}
	return out
}

// reader gathers the paths of a variable that an expression reads.
type reader struct {
	variable string
	paths    []dsl.Path
	// hidden: a macro's own variable has that name.
	hidden bool
}

func (r *reader) visit(e ast.Expr) {
	if path, rooted := r.path(e); rooted {
		r.paths = append(r.paths, path)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		r.visit(e.AsSelect().Operand())
	case ast.CallKind:
		r.call(e.AsCall())
	case ast.ComprehensionKind:
		r.comprehension(e.AsComprehension())
	case ast.ListKind:
		r.all(e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			r.all(entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			r.visit(field.AsStructField().Value())
		}
	}
}

func (r *reader) all(list ...ast.Expr) {
	for _, e := range list {
		r.visit(e)
	}
}

func (r *reader) call(c ast.CallExpr) {
	if c.IsMemberFunction() {
		r.visit(c.Target())
	}
	r.all(c.Args()...)
}

func (r *reader) comprehension(c ast.ComprehensionExpr) {
	r.all(c.IterRange(), c.AccuInit())
	outer := r.hidden
	r.hidden = outer || slices.Contains([]string{c.IterVar(), c.AccuVar()}, r.variable) || c.HasIterVar2() && c.IterVar2() == r.variable
	r.all(c.LoopCondition(), c.LoopStep(), c.Result())
	r.hidden = outer
}

// path returns the fields that an expression leads through, if it begins with the variable and goes on
// by names alone.
func (r *reader) path(e ast.Expr) (path dsl.Path, rooted bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return dsl.Path{}, e.AsIdent() == r.variable && !r.hidden
	case ast.SelectKind:
		s := e.AsSelect()
		path, rooted = r.path(s.Operand())
		return append(path, s.FieldName()), rooted
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.Index, operators.OptIndex, operators.OptSelect:
			if name, constant := constantText(c.Args()[1]); constant {
				path, rooted = r.path(c.Args()[0])
				return append(path, name), rooted
			}
		}
	}
	return nil, false
}

// waited reports whether what a path of the object leads to may change, and not at each write.
func waited(path dsl.Path) bool {
	switch {
	case len(path) == 0:
		return true
	case path[0] == "metadata" && len(path) > 1:
		return !slices.Contains(still[:], path[1])
	}
	return path[0] != "apiVersion" && path[0] != "kind"
}

// still are the fields of the metadata that nobody waits for.
var still = [...]string{"name", "generateName", "namespace", "uid", "creationTimestamp", "selfLink", "resourceVersion", "managedFields"}

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
	if !p.Uses(Self) {
		return out
	}
	parsed, issues := p.compiler.env.Parse(p.text)
	if issues.Err() != nil { // it was compiled once: this does not happen
		out.Paths = []dsl.Path{{}}
		return out
	}
	r := &reader{}
	r.visit(parsed.NativeRep().Expr())
	out.Paths = r.paths
	return out
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

// reader gathers the paths of self that an expression reads.
type reader struct {
	paths []dsl.Path
	// hidden: a macro's own variable is called self.
	hidden bool
}

func (r *reader) visit(e ast.Expr) {
	if path, rooted := r.path(e); rooted {
		r.add(path)
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
	r.hidden = outer || slices.Contains([]string{c.IterVar(), c.AccuVar()}, Self) || c.HasIterVar2() && c.IterVar2() == Self
	r.all(c.LoopCondition(), c.LoopStep(), c.Result())
	r.hidden = outer
}

// path returns the fields that an expression leads through, if it begins with self and goes on by names
// alone.
func (r *reader) path(e ast.Expr) (path dsl.Path, rooted bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return dsl.Path{}, e.AsIdent() == Self && !r.hidden
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

// add notes a path, unless what it leads to never changes, or changes at each write.
func (r *reader) add(path dsl.Path) {
	if len(path) > 0 && slices.Contains([]string{"apiVersion", "kind"}, path[0]) {
		return
	}
	if len(path) > 1 && path[0] == "metadata" && slices.Contains(still[:], path[1]) {
		return
	}
	r.paths = append(r.paths, path)
}

// still are the fields of the metadata that nobody waits for.
var still = [...]string{"name", "generateName", "namespace", "uid", "creationTimestamp", "selfLink", "resourceVersion", "managedFields"}

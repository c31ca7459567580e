// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"slices"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	corev1 "k8s.io/api/core/v1"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Reads returns what the expression reads. An index that is worked out ends a path: then all that it may
// lead to is read. Of an expression that looks back (at old, or diff) it is not known that it reads nothing
// else; what never changes in an object, and what changes at each write, is left out.
func (p *Program) Reads() dsl.Reads {
	out := dsl.Reads{Children: p.Uses(Children), Related: p.Uses(Related), Only: !p.Uses(Old) && !p.Uses(Diff)}
	out.ChildNames, out.RelatedNames, out.Indexes = all(p.Children()), all(p.Related()), all(p.Indexes())
	out.Values, out.Told = p.values(), true
	out.Passing = !out.Only || p.Uses(Now) || p.Uses(Cause)
	r := p.read(Self)
	out.Paths = slices.DeleteFunc(r.paths, still)
	out.Parents = slices.DeleteFunc(r.parents, func(path dsl.Path) bool { return len(path) == 0 || still(path) })
	return out
}

// values are the things whose values the expression reads; see [dsl.Reads].
func (p *Program) values() (out []string) {
	for _, root := range []string{Self, Old} {
		if slices.ContainsFunc(p.read(root).paths, hasValues) {
			out = append(out, Self)
		}
	}
	if p.Uses(Diff) {
		out = append(out, Self)
	}
	for _, root := range []string{Children, Related, Indexes} {
		for _, path := range p.read(root).paths {
			switch {
			case len(path) == 0:
				out = append(out, root+".*")
			case root == Indexes || hasValues(path[1:]):
				out = append(out, root+"."+path[0])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hasValues reports whether a path leads to values of an object. Its apiVersion, kind, type, immutable and
// metadata are no values, but for the annotations taken together and kubectl's last-applied one, which repeat the object.
func hasValues(path dsl.Path) bool {
	switch {
	case len(path) == 0:
		return true
	case path[0] != "metadata":
		return !slices.Contains([]string{"apiVersion", "kind", "type", "immutable"}, path[0])
	case len(path) > 2 && path[1] == "annotations":
		return path[2] == corev1.LastAppliedConfigAnnotation
	}
	return len(path) == 1 || path[1] == "annotations"
}

// all returns the names, and "*" among them where any may be meant.
func all(names []string, whole bool) []string {
	if whole {
		return append([]string{"*"}, names...) // which comes before all names
	}
	return names
}

// read returns what the expression reads of a variable: the fields that it leads through by names alone, in
// the order of the text, and an empty path where it takes the variable in another way.
func (p *Program) read(variable string) *reader {
	r := &reader{variable: variable}
	if p.Uses(variable) {
		r.visit(ast.NavigateAST(p.ast))
	}
	return r
}

// Children returns the names of the children that the expression refers to, sorted: those that it
// selects from children by a constant, as in children.db, children["db"] and children.?db. Whole
// reports whether it uses children in another way too, so that any name may be meant.
func (p *Program) Children() (names []string, whole bool) { return p.selected(Children) }

// Related is Children for related objects.
func (p *Program) Related() (names []string, whole bool) { return p.selected(Related) }

// Indexes is Children for indexes.
func (p *Program) Indexes() (names []string, whole bool) { return p.selected(Indexes) }

// selected returns what the expression selects from a variable.
func (p *Program) selected(variable string) (names []string, whole bool) {
	for _, path := range p.read(variable).paths {
		if len(path) == 0 {
			whole = true
		} else {
			names = append(names, path[0])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), whole
}

// Lead is a way through a variable, and the part of the expression that is it.
type Lead struct {
	Path dsl.Path
	At   ast.Expr
	// Asked: it is asked whether there is something.
	Asked bool
}

// Leads returns the ways through a variable that the expression reads. That of a variable which it takes in another way is empty.
func (p *Program) Leads(variable string) []Lead { return p.read(variable).leads }

// Reads returns what the template's expressions read.
func (t *Template) Reads() dsl.Reads { return ReadsOf(t.Programs()...) }

// ReadsOf returns what several expressions read.
func ReadsOf(programs ...*Program) dsl.Reads {
	out := dsl.Reads{Only: true, Told: true}
	for _, p := range programs {
		out = out.And(p.Reads())
	}
	return out
}

// reader gathers the paths of a variable that an expression reads.
type reader struct {
	variable string
	paths    []dsl.Path
	leads    []Lead
	// parents are the paths of which it asks whether there is something in them: by has(), or .? without one before.
	parents []dsl.Path
	// ways are the paths as far as they have to lead to something.
	ways []dsl.Path
	// hidden: a macro's own variable has that name.
	hidden bool
}

func (r *reader) visit(e ast.NavigableExpr) {
	if at, rooted := r.path(e); rooted {
		r.paths, r.leads = append(r.paths, at.path), append(r.leads, Lead{at.path, e, at.asked})
		way := at.path
		if at.asked {
			way = at.path[:at.sure:at.sure]
			r.parents = append(r.parents, way)
		}
		r.ways = append(r.ways, way)
		return
	}
	outer, binds := r.hidden, false
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		binds = slices.Contains([]string{c.IterVar(), c.AccuVar()}, r.variable) || c.HasIterVar2() && c.IterVar2() == r.variable
	}
	for i, part := range e.Children() {
		r.hidden = outer || binds && i >= 2 // the range and the first value of what is gathered are outside
		r.visit(part)
	}
	r.hidden = outer
}

// steps are the fields that an expression leads through.
type steps struct {
	path dsl.Path
	// asked: it asks whether they are there, from those on after the first sure ones.
	asked bool
	sure  int
}

// ask returns the steps with one more, of which it is asked whether it is there.
func (s steps) ask(name string) steps {
	if !s.asked {
		s.asked, s.sure = true, len(s.path)
	}
	return s.to(name)
}

func (s steps) to(name string) steps {
	s.path = append(s.path, name)
	return s
}

// path returns the fields that an expression leads through, if it begins with the variable and goes on
// by names alone.
func (r *reader) path(e ast.Expr) (at steps, rooted bool) {
	if e.Kind() == ast.IdentKind {
		name := e.AsIdent() // a dot before it leads out of macros
		return steps{path: dsl.Path{}}, name == "."+r.variable || name == r.variable && !r.hidden
	}
	operand, name, how := Selection(e)
	if how == "" {
		return steps{}, false
	}
	at, rooted = r.path(operand)
	if how == operators.OptSelect || how == operators.OptIndex || how == "." && e.AsSelect().IsTestOnly() {
		return at.ask(name), rooted
	}
	return at.to(name), rooted
}

// still reports whether what a path of the object leads to never changes, or at each write: nobody waits for it.
func still(path dsl.Path) bool {
	switch {
	case len(path) == 0:
		return false
	case path[0] == "metadata" && len(path) > 1:
		return slices.Contains([]string{
			"name", "generateName", "namespace", "uid", "creationTimestamp", "selfLink", "resourceVersion", "managedFields",
		}, path[1])
	}
	return path[0] == "apiVersion" || path[0] == "kind"
}

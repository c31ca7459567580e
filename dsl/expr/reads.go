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

// Reads returns what the expression reads. A path ends before a computed key: the whole value there is read. If the
// expression uses old or diff, it may depend on more than Reads lists. Fields that never change, and fields that
// change with each write, are left out.
func (p *Program) Reads() dsl.KnownReads {
	current := p.CurrentFields()
	out := dsl.KnownReads{Children: p.Uses(Children) || len(current) > 0, Related: p.Uses(Related), Only: !p.Uses(Old) && !p.Uses(Diff)}
	out.ChildNames, out.RelatedNames, out.Indexes = all(p.Children()), all(p.Related()), all(p.Indexes())
	out.ChildFields, out.Outcomes = p.Fields(Children), p.read(Handlers).paths
	out.Values, out.Complete = valuesOf(p.read), true
	out.Passing = !out.Only || p.Uses(Now) || p.Uses(Cause)
	r := p.read(Self)
	out.Paths = slices.DeleteFunc(r.paths, still)
	out.Parents = slices.DeleteFunc(r.parents, func(path dsl.Path) bool { return len(path) == 0 || still(path) })
	return out
}

// valuesOf returns the sources of values that an expression, or a part of it, reads; see [dsl.KnownReads].
func valuesOf(read func(variable string) *reader) (out []string) {
	for _, root := range []string{Self, Old} {
		if slices.ContainsFunc(read(root).paths, hasValues) {
			out = append(out, Self)
		}
	}
	if len(read(Diff).paths) > 0 {
		out = append(out, Self)
	}
	for _, root := range []string{Children, Related, Indexes} {
		for _, path := range read(root).paths {
			switch {
			case len(path) == 0:
				out = append(out, root+".*")
			case root == Indexes || hasValues(path[1:]):
				out = append(out, root+"."+path[0])
			}
		}
	}
	for _, path := range read(Current).paths {
		if len(path) == 0 {
			path = dsl.Path{"*"}
		}
		out = append(out, Children+"."+path[0])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hasValues reports whether a path has values of an object. Its apiVersion, kind, type, immutable and metadata do
// not count, except the annotations as a whole and kubectl's last-applied annotation, which repeat the object.
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

// all returns the names, with "*" added if any name may be used.
func all(names []string, whole bool) []string {
	if whole {
		return append([]string{"*"}, names...) // it sorts before all names
	}
	return names
}

// read returns what the expression reads of a variable: the fields that it selects by constant names, in the order
// of the text, and an empty path if it uses the variable in another way.
func (p *Program) read(variable string) *reader {
	r := &reader{variable: variable, keyed: variable == Current}
	if p.Uses(variable) {
		r.visit(ast.NavigateAST(p.full.ast))
	}
	return r
}

// Fields returns the paths of a variable that the expression reads. Of an object that it only gives to ready(), these are the
// fields by which readiness is judged. An empty path is the whole variable.
func (p *Program) Fields(variable string) (out []dsl.Path) {
	r := p.read(variable)
	for i, path := range r.paths {
		if !slices.Contains(r.judged, i) {
			out = append(out, path)
			continue
		}
		for _, field := range dsl.ReadinessFields() {
			out = append(out, slices.Concat(path, field))
		}
	}
	return out
}

// Children returns the names of the children that the expression uses, sorted: those that it selects by a constant,
// as in children.db, children["db"] and children.?db. Whole reports whether it uses children in another way, too,
// so that it may read any of them.
func (p *Program) Children() (names []string, whole bool) { return p.selected(Children) }

// Related is Children for related objects.
func (p *Program) Related() (names []string, whole bool) { return p.selected(Related) }

// Indexes is Children for indexes.
func (p *Program) Indexes() (names []string, whole bool) { return p.selected(Indexes) }

// Current is Children for the children as they are before their apply.
func (p *Program) Current() (names []string, whole bool) { return p.selected(Current) }

// CurrentFields returns the fields of children before their apply that the expression reads. Each path begins with the child's
// name. [AnyKey] behind it stands for a key that is computed.
func (p *Program) CurrentFields() []dsl.Path { return p.Fields(Current) }

// AnyKey stands for a computed key in [Program.CurrentFields].
const AnyKey = "*"

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

// Lead is a path of a variable, and the part of the expression that has it.
type Lead struct {
	Path dsl.Path
	At   ast.Expr
	// Asked: the expression tests whether the path exists.
	Asked bool
}

// Leads returns the paths of a variable that the expression reads. The path is empty if the variable is used in
// another way.
func (p *Program) Leads(variable string) []Lead { return p.read(variable).leads }

// Reads returns what the template's expressions read.
func (t *Template) Reads() dsl.KnownReads { return ReadsOf(t.Programs()...) }

// ReadsOf returns what several expressions read.
func ReadsOf(programs ...*Program) dsl.KnownReads {
	out := dsl.KnownReads{Only: true, Complete: true}
	for _, p := range programs {
		out = out.And(p.Reads())
	}
	return out
}

// reader collects the paths of a variable that an expression reads.
type reader struct {
	variable string
	paths    []dsl.Path
	leads    []Lead
	// parents are the paths that the expression tests for content: by has(), or by the first .? in a path.
	parents []dsl.Path
	// ways are the paths as far as they must exist.
	ways []dsl.Path
	// judged are the indexes of the paths whose objects the expression only gives to ready().
	judged []int
	// hidden: a macro's own variable has the same name.
	hidden bool
	// keyed: the second step of a path may be a computed key; see [AnyKey].
	keyed bool
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
		r.visitKey(e, at.key)
		return
	}
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "ready" && len(e.AsCall().Args()) == 1 {
		if _, rooted := r.path(e.AsCall().Args()[0]); rooted {
			r.judged = append(r.judged, len(r.paths)) // it is the next one
		}
	}
	outer, binds := r.hidden, false
	if e.Kind() == ast.ComprehensionKind {
		c := e.AsComprehension()
		binds = slices.Contains([]string{c.IterVar(), c.AccuVar()}, r.variable) || c.HasIterVar2() && c.IterVar2() == r.variable
	}
	for i, part := range e.Children() {
		r.hidden = outer || binds && i >= 2 // the range and the initial value of the accumulator are outside the macro's scope
		r.visit(part)
	}
	r.hidden = outer
}

// visitKey visits the computed key in a path; nil if there is none.
func (r *reader) visitKey(path ast.NavigableExpr, key ast.Expr) {
	if key == nil {
		return
	}
	for _, e := range ast.MatchDescendants(path, func(e ast.NavigableExpr) bool { return e.ID() == key.ID() }) {
		r.visit(e)
	}
}

// steps are the fields of a path.
type steps struct {
	path dsl.Path
	// key is the expression of a computed key in the path; nil if there is none.
	key ast.Expr
	// asked: the expression tests the existence of the fields after the first sure ones.
	asked bool
	sure  int
}

// ask returns the steps with one more whose existence is tested.
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

// path returns the fields of an expression that begins with the variable and selects constant names.
func (r *reader) path(e ast.Expr) (at steps, rooted bool) {
	if e.Kind() == ast.IdentKind {
		name := e.AsIdent() // a leading dot skips macros' variables
		return steps{path: dsl.Path{}}, name == "."+r.variable || name == r.variable && !r.hidden
	}
	operand, name, how := Selection(e)
	var key ast.Expr
	if how == "" && r.keyed {
		operand, key, how = computed(e)
		name = AnyKey
	}
	if how == "" {
		return steps{}, false
	}
	at, rooted = r.path(operand)
	if key != nil {
		if !rooted || len(at.path) != 1 {
			return steps{}, false
		}
		at.key = key
	}
	if how == operators.OptSelect || how == operators.OptIndex || how == "." && e.AsSelect().IsTestOnly() {
		return at.ask(name), rooted
	}
	return at.to(name), rooted
}

// computed returns the parts of a selection by a key that is no constant; how is empty for other parts.
func computed(e ast.Expr) (operand, key ast.Expr, how string) {
	if e.Kind() != ast.CallKind {
		return nil, nil, ""
	}
	if c := e.AsCall(); c.FunctionName() == operators.Index || c.FunctionName() == operators.OptIndex {
		return c.Args()[0], c.Args()[1], c.FunctionName()
	}
	return nil, nil, ""
}

// still reports whether the value at a path never changes, or changes at each write, so that waiting for a change
// makes no sense.
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

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package apply is the action apply: it keeps the children of an object as templates say, in the
// order in which they need each other.
//
// What the configuration says is read (config.go) and compiled when it is loaded (parse.go, options.go,
// object.go, needs.go, grants.go). A run (run.go) goes through the children level by level: it works out what
// is wanted (wanted.go), applies it (send.go, rollout.go), and asks whether it is ready. When
// everything is applied and nothing waits, what is wanted no more is taken away (remove.go). What
// came of it is told in one condition, one Event and the handler's error (outcome.go, reason.go).
package apply

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
	"github.com/handwerk-dev/handwerk/handlers/graph"
)

// action is the action's name.
const action = "apply"

// Action returns the action. Cel gives it a compiler; it is called for each handler.
func Action(cel func() (*expr.Compiler, error)) actions.Action {
	return actions.Action{
		Name:      action,
		Doc:       "Keep children of the object as their templates say, in the order in which they need each other.",
		OneObject: true,
		Includes:  true,
		Config:    func() any { return new(childrenConfig) },
		Build: func(b actions.Build, config any) (actions.Built, error) {
			compiler, err := cel()
			if err != nil {
				return actions.Built{}, err
			}
			return build(compiler, b, *config.(*childrenConfig))
		},
	}
}

// plan is a handler's children, compiled. It is only read once it is made.
type plan struct {
	// id is the handler's, report its part in the conditions that tell of children.
	id     string
	report report
	params dsl.Params
	// final: the children are made when the object is deleted.
	final bool
	// include says whether the children are wanted, all of them, by its own parameters; nil where they are.
	include       *expr.Program
	includeParams dsl.Params
	children      map[string]*child
	graph         *graph.Graph
}

func build(compiler *expr.Compiler, b actions.Build, config childrenConfig) (actions.Built, error) {
	p, err := newParser(compiler, b)
	if err != nil {
		return actions.Built{}, err
	}
	switch {
	case b.AtDeletion && b.NoFinalizer:
		p.fault(nil, "with finalizer: false the object is gone when the handler runs: nothing could say whose its children are, or wait for them")
	case len(config) == 0:
		p.fault(nil, "must not be empty")
	}
	made := &plan{id: b.ID, report: reportOf(b), params: b.Params, final: b.AtDeletion, children: map[string]*child{}}
	for _, name := range slices.Sorted(maps.Keys(config)) {
		made.children[name] = p.child(name, config[name])
	}
	if b.IncludeWhen != nil {
		made.include, made.includeParams = p.include(b.IncludeWhen.Text, made.children), b.IncludeWhen.Params
	}
	made.graph = p.needs(made.children)
	p.twice(made.children)
	if err := errors.Join(p.faults...); err != nil {
		return actions.Built{}, err
	}
	return made.built(), nil
}

// built returns the handler and what goes with it.
func (p *plan) built() actions.Built {
	out := actions.Built{Func: p.run, Filtered: p.filtered, Needs: []dsl.Need{}, Conditions: p.report.types(), Makers: []string{p.id}}
	if p.report.own != "" {
		reports := dsl.MustParseNeed("patch", "self/status")
		reports.Offered = true
		out.Needs = append(out.Needs, reports)
	}
	out.Reads.Only, out.Reads.Told, out.Reads.Children = true, true, p.final // in a deletion there is no cause child
	for _, name := range p.graph.Names() {
		c := p.children[name]
		if c.template == nil {
			continue // it is at fault, which was told
		}
		out.Children = append(out.Children, shape.NamedChild{
			Name: name, Kind: c.kind, List: c.forEach != nil, Object: p.always(c), Maker: p.id, Needs: p.graph.Needs(name), Judged: c.ready != nil,
		})
		out.Checks = append(out.Checks, c.check)
		if !c.kind.Empty() {
			out.Needs = append(out.Needs, dsl.Need{Verbs: c.verbs(), Kind: c.kind})
			out.Needs = append(out.Needs, c.grants()...)
		}
		if !c.kind.Empty() && c.spec.Ownership != dsl.Unowned && !slices.Contains(out.Owns, c.kind) {
			out.Owns = append(out.Owns, c.kind)
		}
		out.Reads = out.Reads.And(p.reads(c))
	}
	if slices.ContainsFunc(out.Children, func(c shape.NamedChild) bool { return c.Kind.Empty() }) {
		out.Reads.Children = true // its owner says of which kinds they may be
	}
	if p.some(dsl.ChildSpec.ByReference) {
		out.Needs = append(out.Needs, dsl.MustParseNeed("update", "self/finalizers"))
	}
	if p.some(func(s dsl.ChildSpec) bool { return s.ByLabel() || s.OnDelete == dsl.OrphanChild }) {
		out.Needs = append(out.Needs, dsl.MustParseNeed("patch", "self")) // the record of children
	}
	if len(out.Owns) > 0 && !p.final {
		out.Brings = append(out.Brings, dsl.Child) // or drift would not be put back
	}
	if p.some(needsRemoval) {
		out.Brings = append(out.Brings, dsl.Delete)
	}
	out.NoOld = out.Reads.Only // no expression looks back
	return out
}

// reads returns what the expressions of a child read.
func (p *plan) reads(c *child) dsl.Reads {
	programs := slices.Concat(c.programs(), c.conditions())
	if p.include != nil {
		programs = append(programs, p.include)
	}
	out := expr.ReadsOf(programs...)
	if slices.ContainsFunc(c.conditions(), func(p *expr.Program) bool { return p.Uses(childVar) }) {
		out.Values = append(out.Values, expr.Children+"."+c.name)
	}
	return out
}

// some reports whether there is a child that is kept so.
func (p *plan) some(kept func(dsl.ChildSpec) bool) bool {
	for _, c := range p.children {
		if kept(c.spec) {
			return true
		}
	}
	return false
}

// needsRemoval reports whether something is to be done about such a child when its owner is
// deleted: nobody else deletes it, or Kubernetes would delete it although it is to stay.
func needsRemoval(s dsl.ChildSpec) bool {
	switch {
	case s.Ownership == dsl.Unowned, s.OnDelete == dsl.RetainChild:
		return false
	case s.OnDelete == dsl.OrphanChild:
		return true
	}
	return !s.ByReference()
}

// child is a named child, compiled.
type child struct {
	name string
	// spec is how it is kept, but for the key.
	spec dsl.ChildSpec
	// kind is empty where it is worked out.
	kind schema.GroupVersionKind
	// forEach gives the elements that there is a child for; nil for one child. key says which is
	// which, nil for the default.
	forEach, key *expr.Template
	// entry: there is one for each entry that the handler runs for.
	entry bool
	// stays: it is made when its owner is deleted, and left behind.
	stays bool
	// limit is the most elements that there may be.
	limit int
	// include and ready may be nil.
	include, ready *condition
	rollout        *rollout
	template       *expr.Template
	// needs are the other children of this handler that its expressions use; looks reports whether
	// they use children of other handlers.
	needs []string
	looks bool
	// bound is, of a binding, the role that grants finds among the children.
	bound *child
	// config is all that the configuration says of the child, source the part that is the template.
	config, source any
}

// verbs are the rights that keeping the child takes: get where the cache is not enough, create and patch by server-side
// apply, delete when it is wanted no more. What is worked out of a kind, nobody knows before.
func (c *child) verbs() []string {
	verbs := []string{"get", "create", "patch"}
	if c.spec.OnImmutable == dsl.RecreateChild || !c.stays && c.spec.Ownership != dsl.Unowned && (c.spec.OnDelete == "" || c.spec.OnDelete == dsl.DeleteChild) {
		verbs = append(verbs, "delete")
	}
	return verbs
}

// programs returns the expressions that say what the child is and whether it is wanted.
func (c *child) programs() []*expr.Program {
	var out []*expr.Program
	if c.include != nil {
		out = append(out, c.include.program)
	}
	for _, t := range []*expr.Template{c.forEach, c.key, c.template} {
		if t != nil {
			out = append(out, t.Programs()...)
		}
	}
	return out
}

// conditions returns the predicates that look at what the child has become.
func (c *child) conditions() []*expr.Program {
	var out []*expr.Program
	if c.ready != nil {
		out = append(out, c.ready.program)
	}
	if c.rollout != nil && c.rollout.ready != nil {
		out = append(out, c.rollout.ready.program)
	}
	return out
}

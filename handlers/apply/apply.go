// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package apply is the action apply: it keeps the children of an object as templates say, in the order of their
// dependencies.
//
// The configuration is read (config.go) and compiled when it is loaded (parse.go, options.go, object.go, needs.go,
// grants.go). A run (run.go) handles the children level by level: it computes the desired objects (wanted.go) from what
// expressions read (inputs.go, current.go), applies them (send.go, rollout.go), and checks whether they are ready (state.go). No two
// of them may have the same place (taken.go). When everything is applied and nothing waits, it takes away children that
// are not desired any more (remove.go), in waves (waves.go). It reports the result in one condition, one Event and the
// handler's error (outcome.go, reason.go).
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

// Action returns the action. Cel returns a compiler; it is called for each handler.
func Action(cel func() (*expr.Compiler, error)) actions.Action {
	return actions.Action{
		Name:      action,
		Doc:       "Keep children of the object as their templates say, in the order in which they need each other.",
		OneObject: true,
		Includes:  true,
		Config:    func() any { return new(childrenConfig) },
		Children:  func(config any) []string { return slices.Sorted(maps.Keys(*config.(*childrenConfig))) },
		Build: func(b actions.Build, config any) (actions.Built, error) {
			compiler, err := cel()
			if err != nil {
				return actions.Built{}, err
			}
			return build(compiler, b, *config.(*childrenConfig))
		},
	}
}

// plan has a handler's compiled children. It is read-only once it is made.
type plan struct {
	// id is the handler's id; report is its part in the conditions.
	id     string
	report report
	params dsl.Params
	// final: the children are made when the object is deleted.
	final bool
	// include says whether all children are desired, with its own parameters; nil means that they are.
	include       *expr.Program
	includeParams dsl.Params
	children      map[string]*child
	graph         *graph.Graph
	// ordered are the names of children that are deleted in order when their owner is.
	ordered map[string]bool
	// recalled are the fields that expressions read of the children before the handler, by the children's names.
	recalled map[string][]dsl.Path
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
	for _, own := range slices.Sorted(maps.Keys(config)) {
		name := b.Lets.ChildName(own)
		made.children[name] = p.child(name, own, config[own], len(config) == 1)
	}
	if b.IncludeWhen != nil {
		made.include, made.includeParams = p.include(b.IncludeWhen.Program, made.children), b.IncludeWhen.Params
	}
	for _, c := range made.children {
		c.sources = made.sources(c)
	}
	made.graph = p.needs(made.children)
	made.order()
	p.remember(made.children)
	made.recall()
	p.twice(made.children)
	if err := errors.Join(p.faults...); err != nil {
		return actions.Built{}, err
	}
	return made.built(), nil
}

// built returns the handler and its properties.
func (p *plan) built() actions.Built {
	out := actions.Built{Func: p.run, Filtered: p.filtered, Needs: []dsl.Need{}, Conditions: p.report.types(), Makers: []string{p.id}, Patches: []string{}, Asks: p.asks()}
	if p.report.own != "" {
		reports := dsl.MustParseNeed("patch", "self/status")
		reports.Offered = true
		out.Needs = append(out.Needs, reports)
	}
	out.Reads.Only, out.Reads.Complete, out.Reads.Children = true, true, p.final // deletions have no cause child
	for _, name := range p.graph.Names() {
		c := p.children[name]
		if c.template == nil {
			continue // its fault is reported already
		}
		out.Children = append(out.Children, shape.NamedChild{
			Name: name, Kind: c.kind, List: c.forEach != nil, Object: p.always(c), Maker: p.id, Needs: p.graph.Needs(name), Judged: c.ready != nil, Forgotten: c.spec.Ownership == dsl.Unowned,
			Sets: c.sets(), Strict: c.spec.Drift == dsl.DriftStrict, Allow: c.spec.Allow,
		})
		out.Checks = append(out.Checks, func(s shape.Schemas) []error {
			s.Current = p.shapes(s)
			return c.check(s)
		})
		if !c.kind.Empty() {
			out.Needs = append(out.Needs, dsl.Need{Verbs: c.verbs(), Kind: c.kind})
			out.Needs = append(out.Needs, c.grants()...)
		}
		if !c.kind.Empty() && c.spec.Ownership != dsl.Unowned && !slices.Contains(out.Owns, c.kind) {
			out.Owns = append(out.Owns, c.kind)
		}
		out.Reads = out.Reads.And(p.reads(c))
	}
	anyKind := slices.ContainsFunc(out.Children, func(c shape.NamedChild) bool { return c.Kind.Empty() }) // the owner says which kinds it may have
	if anyKind || len(out.Owns) > 0 {
		out.Reads.Children = true // so cause reconcile has the cause child, and drift is put back
	}
	out.Needs = append(out.Needs, p.ownerNeeds()...)
	if p.some(needsRemoval) || len(p.ordered) > 0 {
		// No other cause is added: a step beside apply, such as one that sends a mail, must not run more often.
		out.Brings = append(out.Brings, dsl.Delete)
	}
	out.NoOld = out.Reads.Only // no expression uses old or diff
	return out
}

// ownerNeeds returns the rights on the owner that its children need.
func (p *plan) ownerNeeds() (out []dsl.Need) {
	if p.some(dsl.ChildSpec.ByReference) {
		out = append(out, dsl.MustParseNeed("update", "self/finalizers"))
	}
	if p.some(func(s dsl.ChildSpec) bool { return s.ByLabel() || s.OnDelete == dsl.OrphanChild }) {
		out = append(out, dsl.MustParseNeed("patch", "self")) // for the inventory of children
	}
	return out
}

// reads returns what the expressions of a child read.
func (p *plan) reads(c *child) dsl.KnownReads {
	programs := slices.Concat(c.programs(), c.conditions())
	if p.include != nil {
		programs = append(programs, p.include)
	}
	out := expr.ReadsOf(programs...)
	if slices.ContainsFunc(c.conditions(), func(p *expr.Program) bool { return p.Uses(childVar) }) {
		out.Values = append(out.Values, expr.Children+"."+c.name)
	}
	for _, condition := range c.conditions() {
		for _, field := range condition.Fields(childVar) {
			out.ChildFields = append(out.ChildFields, append(dsl.Path{c.name}, field...))
		}
	}
	for _, program := range c.programs() {
		out.ChildFields = append(out.ChildFields, p.recalls(program)...)
	}
	if c.rollout != nil { // it asks whether the controller has seen the last change
		out.ChildFields = append(out.ChildFields, dsl.Path{c.name, "status"}, dsl.Path{c.name, "metadata", "generation"})
	}
	return out
}

// sets returns the fields that the child's template sets, with those that the engine makes of them.
func (c *child) sets() [][]string {
	out := c.template.Fields()
	for _, path := range out {
		if len(path) > 0 && path[0] == "stringData" { // the API server has it as data
			out = append(out, append([]string{"data"}, path[1:]...))
		}
	}
	return out
}

// some reports whether a child has such a spec.
func (p *plan) some(kept func(dsl.ChildSpec) bool) bool {
	for _, c := range p.children {
		if kept(c.spec) {
			return true
		}
	}
	return false
}

// needsRemoval reports whether the handler must act on such a child when its owner is deleted: Kubernetes does not
// delete it, or would delete it although it should stay.
func needsRemoval(s dsl.ChildSpec) bool {
	switch {
	case s.Ownership == dsl.Unowned, s.OnDelete == dsl.RetainChild:
		return false
	case s.OnDelete == dsl.OrphanChild:
		return true
	}
	return !s.ByReference()
}

// child is a compiled child.
type child struct {
	// name is its name in the resource, own that in the configuration. They differ in a part that is used with a name.
	name, own string
	// spec says how it is kept, without the key.
	spec dsl.ChildSpec
	// kind is empty if it is computed.
	kind schema.GroupVersionKind
	// forEach returns the elements, with one child for each; nil means a single child. key returns the key of an
	// element; nil means the default.
	forEach, key *expr.Template
	// entry: there is one for each entry of the handler.
	entry bool
	// stays: it is made when its owner is deleted, and stays.
	stays bool
	// limit is the greatest number of elements.
	limit int
	// include and ready may be nil.
	include, ready *condition
	rollout        *rollout
	template       *expr.Template
	// needs are the other children of this handler that its expressions use. looks reports whether they use
	// children of other handlers, or children before the handler; recalls, whether the child itself is among these.
	needs          []string
	looks, recalls bool
	// bound is the role of a binding, if grants finds it among the children.
	bound *child
	// sources are what the template reads; nil if they are not known.
	sources *sources
	// config is the whole configuration of the child; source is its template.
	config, source any
}

// verbs returns the rights that the child needs: get if the cache is not enough, create and patch for server-side
// apply, delete if it is not desired any more. They are not known for a computed kind.
func (c *child) verbs() []string {
	verbs := []string{"get", "create", "patch"}
	if c.spec.OnImmutable == dsl.RecreateChild || c.spec.Update == dsl.UpdateRecreate || !c.stays && c.spec.Ownership != dsl.Unowned && (c.spec.OnDelete == "" || c.spec.OnDelete == dsl.DeleteChild) {
		verbs = append(verbs, "delete")
	}
	return verbs
}

// programs returns the expressions that define the child and whether it is desired.
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
	if c.rollout != nil {
		out = append(out, c.rollout.programs()...)
	}
	return out
}

// conditions returns the predicates on the applied child.
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

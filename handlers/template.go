// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/plain"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// writer has the common parts of actions that use templates: the compiled templates, their faults, what they read,
// and their checks.
type writer struct {
	compiler *expr.Compiler
	params   dsl.Params
	checks   []shape.Check
	faults   []error
	// needs are the rights of the action beyond the engine's own.
	needs []dsl.Need
	// unset: missing values are handled. unsetStatus: those of the object's status are.
	unset, unsetStatus bool
	// named: of objects that expressions return as a whole, only the names are used.
	named bool
	// reads is what the expressions read.
	reads dsl.KnownReads
	// lets: expressions may use lets.
	lets bool
	// branches observes predicates; nil means that they are not observed.
	branches expr.Branches
	// asks are the predicates, for people who ask.
	asks []actions.Ask
	// reported: the conditions of a machine report the result; see [actions.Build].
	reported bool
}

// newWriter returns a writer for a handler. A handler that runs for a whole resource has the variable objects.
func newWriter(cel compilerOf, b actions.Build) (*writer, error) {
	compiler, err := cel()
	if err != nil {
		return nil, err
	}
	if compiler, err = compiler.WithLets(b.Lets); err != nil {
		return nil, err
	}
	if b.ResourceWide && !b.OperatorWide {
		if compiler, err = compiler.With(objectsVariable); err != nil {
			return nil, err
		}
	}
	if compiler, err = compiler.With(b.Vars...); err != nil {
		return nil, err
	}
	branches := b.Registry.Branches(b.Resource, b.ID)
	compiler = compiler.Observed(branches).Without(b.Without)
	return &writer{compiler: compiler, branches: branches, params: b.Params, needs: []dsl.Need{}, reads: dsl.KnownReads{Only: true, Complete: true}, lets: b.Lets != nil, reported: b.Reported}, nil
}

// objectsVariable is the variable of schedules with the resource's objects.
const objectsVariable = "objects"

// template compiles a tree at a place in the handler. Part returns the schema of the result; nil if it has none.
func (w *writer) template(tree any, part func(shape.Schemas) *spec.Schema, at ...string) *expr.Template {
	return w.templateBy(w.compiler, tree, part, at...)
}

// stored is template for a tree that may generate values, because its object has them then: in self, at the path.
func (w *writer) stored(tree any, path dsl.Path, part func(shape.Schemas) *spec.Schema, at ...string) *expr.Template {
	t := w.templateBy(w.compiler.Generating(), tree, part, at...)
	if t == nil {
		return nil
	}
	w.faults = append(w.faults, t.Once(expr.Stored{Variable: expr.Self, Way: path})...)
	return t
}

func (w *writer) templateBy(compiler *expr.Compiler, tree any, part func(shape.Schemas) *spec.Schema, at ...string) *expr.Template {
	t, err := compiler.Template(tree, at...)
	if err != nil {
		w.faults = append(w.faults, err)
		return nil
	}
	w.reads = w.reads.And(t.Reads())
	unset, unsetStatus := w.unset, w.unsetStatus
	w.checks = append(w.checks, func(s shape.Schemas) []error {
		s = s.With(objectsVariable, shape.Shape{Schema: s.Self.Schema, List: true, Kept: s.Self.Kept})
		s.Unset, s.UnsetStatus, s.Named = unset, unsetStatus, w.named
		var target *spec.Schema
		if part != nil {
			target = part(s)
		}
		return check.Template(t, s, target)
	})
	return t
}

// predicate compiles an expression that is true or false at a place in the handler; nil if it has a fault. Unset: a missing value is
// handled.
func (w *writer) predicate(text, name string, unset bool, at ...string) *expr.Program {
	program, err := w.compiler.Predicate(text)
	if err != nil {
		w.faults = append(w.faults, expr.Faults(at, err)...)
		return nil
	}
	w.reads = w.reads.And(program.Reads())
	w.checks = append(w.checks, func(s shape.Schemas) []error {
		s.Unset = unset
		return expr.Faults(at, check.Program(program, s))
	})
	return program.Observed(name, w.branches)
}

// ask lets people ask a predicate that is at a place in the handler.
func (w *writer) ask(at []string, what string, program *expr.Program) {
	w.asks = append(w.asks, actions.Ask{At: at, Explain: func(s *dsl.Subject) []dsl.Clause {
		out := program.Explain(w.scope(*s), false)
		out.What = what
		return []dsl.Clause{out}
	}})
}

// fault notes a fault at a place in the handler.
func (w *writer) fault(at []string, format string, args ...any) {
	w.faults = append(w.faults, &shape.Misfit{Path: slices.Clone(at), Message: fmt.Sprintf(format, args...)})
}

// built returns the common result of actions whose effect depends on when they run, such as an Event. For these,
// Reads is not enough to decide when to run, except in a machine, whose state decides that.
func (w *writer) built(fn dsl.Func) actions.Built {
	// Only: it uses neither old nor diff.
	out := actions.Built{Func: fn, Checks: w.checks, Needs: w.needs, Reads: w.reads, NoOld: w.reads.Only, Makers: []string{}, Patches: []string{}}
	out.Reads.Only = w.reported
	return out
}

// scope returns the scope of the expressions of an attempt. They share the children, which are read once, and the values of lets.
func (w *writer) scope(of dsl.Subject) expr.Scope {
	if of.Children != nil {
		of.Children = readOnce{of.Children, sync.OnceValues(of.Children.All)}
	}
	s := expr.Scope{Subject: &of, Params: w.params}
	if w.lets {
		s.Lets = &expr.LetValues{}
	}
	if of.Objects != nil {
		objects := make([]any, len(of.Objects))
		for i, o := range of.Objects {
			objects[i] = o.Object
		}
		s.Vars = map[string]any{objectsVariable: objects}
	}
	return s
}

// objectScope is scope for results that become part of an object, or are stored elsewhere. All of them together
// must fit into one object.
func (w *writer) objectScope(of dsl.Subject) expr.Scope {
	s := w.scope(of)
	s.Room = expr.NewRoom(expr.MostOfAnObject)
	return s
}

// readOnce reads children at most once.
type readOnce struct {
	dsl.ChildReader
	all func() ([]dsl.ChildObject, error)
}

// All returns what was read.
func (c readOnce) All() ([]dsl.ChildObject, error) { return c.all() }

// text renders a template that must be text. A missing value is the empty text.
func text(t *expr.Template, s expr.Scope) (string, error) {
	value, err := t.Render(s)
	switch value := value.(type) {
	case string:
		return value, err
	case bool, int64, float64:
		return plain.Text(value), err
	}
	if err == nil && value != nil && value != expr.None {
		err = fmt.Errorf("want text, found %s", s.Subject.Secrets.Shown(value))
	}
	return "", err
}

// property returns the schema of a field; nil if it is not known.
func property(s *spec.Schema, names ...string) *spec.Schema {
	for _, name := range names {
		if s == nil {
			return nil
		}
		found, ok := s.Properties[name]
		if !ok {
			return nil
		}
		s = &found
	}
	return s
}

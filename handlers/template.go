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
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// writer gathers what the actions that are made of templates have in common: compiled templates,
// their faults, what they read, and their checks.
type writer struct {
	compiler *expr.Compiler
	params   dsl.Params
	checks   []shape.Check
	faults   []error
	// needs are what the action does beside what the engine does.
	needs []dsl.Need
	// unset: where an expression comes upon nothing is dealt with.
	unset bool
	// named: of an object that an expression gives as a whole no more is looked at than what it is called.
	named bool
	// reads is what its expressions read.
	reads dsl.Reads
	// told: it belongs to a machine, see [actions.Build].
	told bool
}

// newWriter returns a writer for a handler; one that runs for a whole resource knows objects.
func newWriter(cel compilerOf, b actions.Build) (*writer, error) {
	compiler, err := cel()
	if err != nil {
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
	return &writer{compiler: compiler, params: b.Params, needs: []dsl.Need{}, reads: dsl.Reads{Only: true, Told: true}, told: b.Told}, nil
}

// objectsVariable is what expressions of a schedule call the resource's objects.
const objectsVariable = "objects"

// template compiles a tree; the place of it in the handler is at. Part picks the schema of what
// the tree becomes; nil when there is none to hold it against.
func (w *writer) template(tree any, part func(shape.Schemas) *spec.Schema, at ...string) *expr.Template {
	t, err := w.compiler.Template(tree, at...)
	if err != nil {
		w.faults = append(w.faults, err)
		return nil
	}
	w.reads = w.reads.And(t.Reads())
	w.checks = append(w.checks, func(s shape.Schemas) []error {
		s = s.With(objectsVariable, shape.Shape{Schema: s.Self.Schema, List: true, Kept: s.Self.Kept})
		s.Unset, s.Named = w.unset, w.named
		var target *spec.Schema
		if part != nil {
			target = part(s)
		}
		return check.Template(t, s, target)
	})
	return t
}

// fault notes a fault at a place in the handler.
func (w *writer) fault(at []string, format string, args ...any) {
	w.faults = append(w.faults, &shape.Misfit{Path: slices.Clone(at), Message: fmt.Sprintf(format, args...)})
}

// built is what an action returns whose effect is not all that follows from what it reads: it happened at
// a certain time. In a machine it is its state that says when, so there nothing else is to be looked at.
func (w *writer) built(fn dsl.Func) actions.Built {
	// Only: none looks back.
	out := actions.Built{Func: fn, Checks: w.checks, Needs: w.needs, Reads: w.reads, NoOld: w.reads.Only, Makers: []string{}}
	out.Reads.Only = w.told
	return out
}

// scope is what the expressions of an attempt see: all of them the same children, which are read once.
func (w *writer) scope(of dsl.Subject) expr.Scope {
	if of.Children != nil {
		of.Children = readOnce{of.Children, sync.OnceValues(of.Children.All)}
	}
	s := expr.Scope{Subject: &of, Params: w.params}
	if of.Objects != nil {
		objects := make([]any, len(of.Objects))
		for i, o := range of.Objects {
			objects[i] = o.Object
		}
		s.Vars = map[string]any{objectsVariable: objects}
	}
	return s
}

// objectScope is scope for what becomes a part of an object, or is written down somewhere: all of it
// together is no larger than an object may be.
func (w *writer) objectScope(of dsl.Subject) expr.Scope {
	s := w.scope(of)
	s.Room = expr.NewRoom(expr.MostOfAnObject)
	return s
}

// readOnce are children that are read at most once.
type readOnce struct {
	dsl.ChildReader
	all func() ([]dsl.ChildObject, error)
}

// All returns what was read.
func (c readOnce) All() ([]dsl.ChildObject, error) { return c.all() }

// text renders a template that must be text; what is not there is the empty text.
func text(t *expr.Template, s expr.Scope) (string, error) {
	value, err := t.Render(s)
	switch value := value.(type) {
	case string:
		return value, err
	case bool, int64, float64:
		return fmt.Sprint(value), err
	}
	if err == nil && value != nil && value != expr.None {
		err = fmt.Errorf("want text, found %s", s.Subject.Secrets.Shown(value))
	}
	return "", err
}

// property returns the schema of a field, nil when it is not known.
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

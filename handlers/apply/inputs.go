// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
)

// inputs are what the expressions of a reconcile read. Of the handler's own children, they see those of this reconcile, so
// children that are not desired are missing.
type inputs struct {
	owner  *dsl.Subject
	params dsl.Params
	// others are the children of other handlers; unknown is the error if they cannot be read.
	others  []dsl.ChildObject
	unknown error
	states  states
}

// scope returns the scope of expressions.
func (in inputs) scope(vars map[string]any) expr.Scope {
	own := *in.owner
	own.Children = seen{own.Children, in}
	return expr.Scope{Subject: &own, Params: in.params, Vars: vars}
}

// seen are the children as expressions see them.
type seen struct {
	dsl.ChildReader
	inputs inputs
}

// All returns the children of other handlers, and this handler's children in this reconcile.
func (s seen) All() ([]dsl.ChildObject, error) {
	return slices.Concat(s.inputs.others, s.inputs.states.live()), nil
}

// holds evaluates a predicate on an existing object. If a value of the object is missing, or the object is being deleted, it does
// not hold yet.
func (in inputs) holds(c *condition, o *object) (bool, error) {
	if o.read() == nil || o.ending() {
		return false, nil
	}
	vars := map[string]any{childVar: o.live.Object}
	maps.Copy(vars, o.vars)
	holds, err := c.program.Bool(in.scope(vars))
	if errors.Is(err, expr.ErrMissing) && !errors.Is(err, expr.ErrMissingOwn) {
		return false, nil
	}
	return holds, err
}

// missing finds the expression that misses a value, and where it looked: a child's name, the related objects or an
// index; empty for other places. It names a child that is not desired only if nothing else is missing: a child that
// reads it is then taken away.
func (in inputs) missing(programs []*expr.Program, scope expr.Scope) (from string, cause error) {
	for _, program := range programs {
		_, err := program.Eval(scope)
		if !errors.Is(err, expr.ErrMissing) {
			continue
		}
		names, _ := program.Children()
		excluded, others := in.states.split(names)
		if len(excluded) > 0 {
			filled := scope
			filled.Anything = excluded
			_, elsewhere := program.Eval(filled)
			if !errors.Is(elsewhere, expr.ErrMissing) {
				return excluded[0], err
			}
			err = elsewhere
		}
		switch {
		case len(others) > 0:
			return others[0], err
		case program.Uses(expr.Related):
			return "related objects", err
		case program.Uses(expr.Indexes):
			return "an index", err
		}
		return "", err
	}
	return "", nil
}

// lacks names the missing related object that expressions read; empty for none.
func (in inputs) lacks(programs []*expr.Program) string {
	if in.owner.Related == nil {
		return ""
	}
	for _, relation := range in.owner.Related.Relations() {
		uses := func(program *expr.Program) bool {
			names, _ := program.Related()
			return slices.Contains(names, relation.Name)
		}
		if !slices.ContainsFunc(programs, uses) {
			continue
		}
		if absent := in.owner.Related.Absent(relation.Name); absent != "" {
			return absent
		}
	}
	return ""
}

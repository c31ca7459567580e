// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// gate is a when of set. While it is false, it is closed: the entries at its path and below stay as they are.
type gate struct {
	name    string
	program *expr.Program
}

// gate compiles the expressions under when, and adds them to the fields that they are about.
func (s *setter) gate(config whens) {
	entries := s.entries()
	if len(entries)+len(s.conditions) == 0 {
		return // that is a fault already
	}
	for _, name := range slices.Sorted(maps.Keys(config)) {
		at := []string{"set", "when", name}
		path, err := dsl.ParsePath(name)
		if err != nil {
			s.faults = append(s.faults, &shape.Misfit{Path: at, Key: true, Message: err.Error()})
			continue
		}
		if path[0] == "conditions" {
			s.faults = append(s.faults, &shape.Misfit{Path: at, Key: true, Message: "a condition has a when of its own, beside its type"})
			continue
		}
		program := s.predicate(string(config[name]), "when", false, at...)
		g, found := &gate{name, program}, false
		for i := range entries {
			if path.Leads(entries[i].path) {
				found = true
				entries[i].field.gates = append(entries[i].field.gates, g)
			}
		}
		switch {
		case !found:
			s.faults = append(s.faults, &shape.Misfit{Path: at, Key: true, Message: expr.Unknown("entry", name, "", names(entries))})
		case program != nil:
			s.gates = append(s.gates, g)
			s.ask(at, name+": when", program)
		}
	}
}

// setEntry is a field with its path in the configuration of set.
type setEntry struct {
	path  dsl.Path
	field *field
}

// entries returns all fields to set.
func (s *setter) entries() (out []setEntry) {
	add := func(list []field, below ...string) {
		for i := range list {
			out = append(out, setEntry{append(slices.Clone(below), list[i].path...), &list[i]})
		}
	}
	add(s.status, "status")
	add(s.spec) // its paths begin with spec
	add(s.labels, "labels")
	add(s.annotations, "annotations")
	return out
}

func names(entries []setEntry) (out []string) {
	for _, e := range entries {
		out = append(out, e.path.String())
	}
	slices.Sort(out)
	return out
}

// closed returns the gates that are closed for an object. One that fails is closed, too, and its error is returned.
func (s *setter) closed(scope expr.Scope) (closed map[*gate]bool, faults []error) {
	closed = map[*gate]bool{}
	for _, g := range s.gates {
		holds, err := g.program.Bool(scope)
		if err != nil {
			faults = append(faults, fmt.Errorf("evaluating set.when.%s: %w", g.name, err))
		}
		closed[g] = !holds
	}
	return closed, faults
}

// leaves reports whether a condition stays as it is for an object.
func (s *setter) leaves(of *dsl.Subject, kind string) bool {
	i := slices.IndexFunc(s.conditions, func(c condition) bool { return c.kind == kind })
	if i < 0 || s.conditions[i].when == nil {
		return false
	}
	holds, err := s.conditions[i].when.Bool(s.scope(*of))
	return !holds && !errors.Is(err, expr.ErrMissing)
}

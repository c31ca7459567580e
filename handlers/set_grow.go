// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// growing adds the check of fields that grow.
func (s *setter) growing(b actions.Build) {
	if b.Always {
		s.checks = append(s.checks, s.grow)
	}
}

// grow warns of fields that are set to more than they are, each time that the handler runs.
func (s *setter) grow(shape.Schemas) (out []error) {
	for _, e := range s.entries() {
		path := e.path
		if slices.Contains([]string{"labels", "annotations"}, path[0]) {
			path = append(dsl.Path{"metadata"}, path...)
		}
		if len(e.field.gates) == 0 && e.field.value.Grows(expr.Self, path) {
			out = append(out, &shape.Misfit{Path: e.field.value.Path, Warning: true, Message: "it adds to the field that it sets, so each start of the operator changes the field again: take the value from another field, or count with causes such as [create] or a timer"})
		}
	}
	return out
}

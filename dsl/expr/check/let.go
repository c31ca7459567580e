// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Let returns the schemas with which a let is checked where it stands. What differs from one use to another is left to the uses:
// the variables and parameters of a handler, and whether fields are sure to exist.
func Let(l *expr.Let, s shape.Schemas) shape.Schemas {
	s.Without, s.Params, s.Sure, s.Unset, s.Named, s.Alone = nil, nil, nil, true, true, true
	if l.AnyEntry {
		s.Children = nil
	}
	return s
}

// reported reports whether the check of a let where it stands finds a fault.
func (in *inspector) reported(l *expr.Let, p *expr.Program, message string) bool {
	if l.Elsewhere {
		return false
	}
	_, _, err := infer(p, Let(l, in.schemas), nil)
	found, is := errors.AsType[*expr.Error](err)
	return is && slices.ContainsFunc(found.Issues, func(i expr.Issue) bool { return i.Message == message })
}

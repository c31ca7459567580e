// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// moment compiles the field at of a handler and sets the handler's timing. It adds the paths that the expression reads to the handler's reads.
func (w *watched) moment(at path, h *making, out *dsl.Handler) {
	if h.At == "" {
		return
	}
	out.Timing.At = func(*dsl.Subject) (time.Time, error) { return time.Time{}, nil } // so that a fault has no others in its wake
	compiler, err := w.compiler()
	if err != nil {
		w.Fault(at, "%v", err)
		return
	}
	program, err := compiler.Moment(string(h.At))
	if err != nil {
		w.unfit(at, at, expr.Faults(nil, err)...)
		return
	}
	out.Timing.At = program.Moment("at", h.With)
	out.Known.At = dsl.Clause{Text: program.Text(), Place: w.line(at)}
	out.Known.Reads = out.Known.Reads.And(program.Reads())
	w.check(at, at, func(s shape.Schemas) []error {
		s.Params = given(h)
		return expr.Faults(nil, check.Program(program, s))
	})
	for _, variable := range []string{expr.Old, expr.Diff, expr.Cause, expr.Event, expr.Children, expr.Related, expr.Indexes, expr.Handlers} {
		if program.Uses(variable) {
			w.Fault(at, "%s%s is not there in at, which gives a time of the object alone", program.Through(variable), variable)
		}
	}
	if program.Uses(expr.Now) {
		w.Fault(at, "%snow is not there in at: such a time would move on for ever, and never come (every runs again and again)", program.Through(expr.Now))
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expr"
	"github.com/handwerk-dev/handwerk/dsl/expr/check"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// again makes a handler ask for another run when it has succeeded, if it says runAgainAfter. It returns what the expression
// reads.
func (w *watched) again(at path, h *making, out *dsl.Handler) dsl.KnownReads {
	nothing := dsl.KnownReads{Only: true, Complete: true}
	if h.Again == "" {
		return nothing
	}
	if !slices.ContainsFunc(h.Causes, func(c dsl.Cause) bool { return c != dsl.Delete }) && len(h.Causes) > 0 {
		w.FaultKey(at, "is not for handlers of deletions alone, which do not run again after a success")
		return nothing
	}
	if fixed, err := time.ParseDuration(string(h.Again)); err == nil {
		if fixed <= 0 {
			w.Fault(at, "must be more than zero")
		}
		out.Func = runsAgain(out.Func, func(*dsl.Subject) (*time.Duration, error) { return &fixed, nil })
		return nothing
	}
	program := w.span(at, "runAgainAfter", string(h.Again), h)
	if program == nil {
		return nothing
	}
	out.Func = runsAgain(out.Func, func(s *dsl.Subject) (*time.Duration, error) {
		return program.Duration(expr.Scope{Subject: s, Params: h.With})
	})
	return program.Reads()
}

// span compiles an expression of the handler's field that gives a duration; nil if it has a fault.
func (w *watched) span(at path, field, text string, h *making) *expr.Program {
	compiler, err := w.compiler()
	if err != nil {
		w.Fault(at, "%v", err)
		return nil
	}
	program, err := compiler.Span(text)
	if err != nil {
		w.unfit(at, at, expr.Faults(nil, err)...)
		return nil
	}
	for _, variable := range []string{expr.Old, expr.Diff, expr.Event} {
		if program.Uses(variable) {
			w.Fault(at, "%s%s is not there in %s, which is about the object as it is", program.Through(variable), variable, field)
		}
	}
	w.check(at, at, func(s shape.Schemas) []error {
		s.Params = given(h)
		return expr.Faults(nil, check.Program(program, s))
	})
	return program
}

// runsAgain returns code that asks for another run after a success, unless wait is nil.
func runsAgain(code dsl.Func, wait func(*dsl.Subject) (*time.Duration, error)) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		if err := code(ctx, r); err != nil || r.Cause == dsl.Delete {
			return err
		}
		after, err := wait(&r.Subject)
		switch {
		case err != nil:
			return fmt.Errorf("evaluating runAgainAfter: %w", err)
		case after != nil && *after < 0:
			return fmt.Errorf("evaluating runAgainAfter: the duration %s is negative", *after)
		case after != nil:
			r.RunAgain(*after)
		}
		return nil
	}
}

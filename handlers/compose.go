// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// composer runs the steps of a handler, and handlers with forEach.
type composer struct{}

// Step runs a step if its filter holds.
func (composer) Step(s actions.Step) dsl.Func {
	if s.When == nil && !s.NotOnDelete {
		return s.Func
	}
	return func(ctx context.Context, r *dsl.Request) error {
		if s.NotOnDelete && r.Cause == dsl.Delete {
			return nil
		}
		if s.When == nil || leaves(s.Entries, r) {
			return s.Func(ctx, r)
		}
		switch holds, err := s.When(&r.Subject); {
		case err != nil:
			return err
		case holds:
			return s.Func(ctx, r)
		}
		if s.Filtered != nil && r.Cause != dsl.Delete {
			s.Filtered(&r.Subject, r.Patch)
		}
		return nil
	}
}

// All runs each function, in order.
func (composer) All(code []dsl.Func) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		for i, fn := range code {
			if err := fn(ctx, r); err != nil {
				return fmt.Errorf("step %d of %d: %w", i+1, len(code), err)
			}
		}
		return nil
	}
}

// Each runs code for each entry.
func (composer) Each(e *actions.Entries, fn dsl.Func) dsl.Func {
	return func(_ context.Context, r *dsl.Request) error { return forEach{e}.run(r, fn) }
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Function is Go code that a configuration calls by name.
type Function struct {
	// Name is what configurations write, by convention "<operator>.<Function>". Required.
	Name string
	// Func is the code, Daemon that of a daemon. One of them is required, and there is no more than one.
	Func   Func
	Daemon DaemonFunc
	// Doc says in a sentence what it does. Optional.
	Doc string
	// Params is a value of the struct that the parameters decode into (json tags), so that they
	// are checked when the configuration is loaded. Nil means that it takes none.
	Params any
	// Needs are what the code does with other resources, and with the handled object beyond what the
	// engine does, so that `operator rbac` can allow it: mostly MustParseNeed. Nil means that it is not
	// known; a function that needs nothing says so by an empty list.
	Needs []Need
}

// Steps makes one handler of several that run in order. A step that fails ends the attempt, and so does one that overruns the
// handler's timeout or panics, of which nothing counts; the next attempt goes on with it and does not repeat those before it,
// also after a restart where the handler's progress is stored on the object. What those before it want of the object is sent.
// When the handler has something new to see, it begins anew. Sub-handlers are for the last step, which is through when they are; one before that fails for good by declaring some.
func Steps(steps ...Func) Func {
	return func(ctx context.Context, r *Request) error {
		for r.Step < len(steps) {
			if err := step(ctx, steps[r.Step], r); err != nil {
				return fmt.Errorf("step %d of %d: %w", r.Step+1, len(steps), err)
			}
			switch last := r.Step+1 == len(steps); {
			case !r.Parts.Any():
				r.Step++
			case last:
				return nil // it declares them until they are through
			default:
				return Permanent(fmt.Errorf("step %d of %d: it declares sub-handlers, which only the last step can", r.Step+1, len(steps)))
			}
		}
		return nil
	}
}

// step runs one step. What it wants of the object is with what those before it want once it has come to its end in time.
func step(ctx context.Context, fn Func, r *Request) error {
	all := r.Patch
	if all == nil {
		return fn(ctx, r) // in a test that has no engine
	}
	r.Patch, all.Finished = NewPatch(), true
	before := slices.Clone(all.Offered)
	r.Patch.Offered = slices.Clone(before) // a condition may sum up what those before it have said
	defer func() { r.Patch = all }()
	err := fn(ctx, r)
	r.Patch.Offered = slices.DeleteFunc(r.Patch.Offered, func(c metav1.Condition) bool { return slices.Contains(before, c) })
	switch wrong := r.Patch.Err(); {
	case ctx.Err() != nil && err == nil:
		return ctx.Err()
	case ctx.Err() != nil:
		return err
	case err == nil && wrong != nil:
		err = Permanent(wrong)
	}
	all.Finished = false // what comes after the steps may be broken off, too
	all.Join(r.Patch)
	all.faults = append(all.faults, r.Patch.faults...) // which count, too, where the step waits
	return err
}

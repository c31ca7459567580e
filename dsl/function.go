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
	// Name is the name in configurations, by convention "<operator>.<Function>". Required.
	Name string
	// Func is the code of a handler, Daemon that of a daemon, and Admission that of a rule about requests. Exactly one of them
	// must be set.
	Func      Func
	Daemon    DaemonFunc
	Admission AdmissionFunc
	// Doc says in a sentence what the function does. Optional.
	Doc string
	// Params is a value of the struct that the parameters decode into, with json tags. They are checked against it
	// when the configuration is loaded. Nil means that the function takes no parameters.
	Params any
	// Needs are the rights that the code needs on other resources, and on the handled object beyond the engine's
	// own, so that `operator rbac` can grant them; make them with MustParseNeed. Nil means that they are not known.
	// A function that needs no rights has an empty list.
	Needs []Need
	// Makes are the names under which Func makes children besides the handler's id, without that id and the dot after
	// it; see [ChildSpec].Handler. Nil means that they are not known: children of a handler that is gone stay then. Code
	// that uses the handler's id alone has an empty list, as in Makes: []string{}. They count if the call stands for the
	// handler by itself: those within steps, states and forEach are not known.
	Makes []string
}

// Steps makes one handler of several functions that run in order. A step that returns an error ends the attempt,
// and the changes of the steps before it are sent, too. A step that overruns the handler's timeout or panics also
// ends the attempt, and its changes are dropped. The next attempt begins with the failed step and does not repeat
// those before it; after a restart, too, if the handler's progress is stored on the object. When what the handler
// looks at has changed, it begins with the first step again.
//
// Only the last step should declare sub-handlers: it is done when they are. An earlier step that declares some
// fails for good.
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
				return nil // the step declares them until they are through
			default:
				return Permanent(fmt.Errorf("step %d of %d: it declares sub-handlers, which only the last step can", r.Step+1, len(steps)))
			}
		}
		return nil
	}
}

// step runs one step. It adds the step's changes to those of the steps before it when the step has ended in time.
func step(ctx context.Context, fn Func, r *Request) error {
	all := r.Patch
	if all == nil {
		return fn(ctx, r) // only in a test without an engine
	}
	r.Patch, all.Finished = NewPatch(), true
	before := slices.Clone(all.Offered)
	r.Patch.Offered = slices.Clone(before) // a condition may summarize those of earlier steps
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
	all.Finished = false // code after the steps may time out or panic, too
	all.Join(r.Patch)
	all.faults = append(all.faults, r.Patch.faults...) // faults count also when the step waits
	return err
}

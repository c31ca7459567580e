// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/source"
)

// strictly turns warnings into faults. Next to an error that is not made of faults, it returns both unchanged.
func strictly(warnings source.Faults, err error) (source.Faults, error) {
	wrong, faulty := errors.AsType[source.Faults](err)
	if err != nil && !faulty || len(warnings) == 0 {
		return warnings, err
	}
	return nil, slices.Concat(wrong, warnings).Sorted()
}

// loops returns warnings of handlers that trigger each other.
func loops(op *dsl.Operator) (warnings source.Faults) {
	for _, r := range op.Resources() {
		for _, loop := range r.Loops() {
			first := r.Handlers()[slices.IndexFunc(r.Handlers(), func(h *dsl.Handler) bool { return h.ID == loop[0] })]
			warnings = append(warnings, warning(op, dsl.Place{Resource: r, Handler: first},
				"handlers %s feed each other: each sets what the next one looks at, and the last one what the first one does; they run again and again unless what they set comes to rest",
				strings.Join(loop, ", ")))
		}
	}
	return warnings
}

// unled returns warnings of schedules in an operator without leader election: they should run once at their time,
// and run once on each replica.
func unled(op *dsl.Operator) (warnings source.Faults) {
	if mode := op.Settings.LeaderElection.Mode; mode != "" && mode != dsl.LeaderNone {
		return nil
	}
	for r, h := range op.Handlers() {
		if h.ResourceWide {
			warnings = append(warnings, warning(op, dsl.Place{Resource: r, Handler: h},
				"schedule %s runs on each process of the operator, as no leader is elected (set settings.leaderElection, or run with --leader-elect)", h.ID))
		}
	}
	return warnings
}

// warning returns a warning for a part of an operator, with its place in the configuration.
func warning(op *dsl.Operator, of dsl.Place, format string, args ...any) source.Fault {
	found := &dsl.Fault{Place: of, Err: fmt.Errorf(format, args...)}
	if op.Placed != nil {
		if placed, ok := errors.AsType[source.Fault](op.Placed(found)); ok {
			return placed
		}
	}
	of.Handler = nil // the text names it
	return source.Fault{Message: (&dsl.Fault{Place: of, Err: found.Err}).Error()}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// Why is the reason why a handler ran in a reconcile, or did not.
type Why struct {
	Handler string
	// Cause is the cause for which it ran or would run; empty if nothing is due.
	Cause  dsl.Cause
	Reason why.Reason
	// Detail has facts that the reason lacks.
	Detail string
}

// String formats the reason for the log.
func (w Why) String() string {
	if w.Detail == "" {
		return w.Reason.String()
	}
	return fmt.Sprintf("%s: %s", w.Reason, w.Detail)
}

// Reasons returns the reason of each of the given handlers, in their order. It is empty if the reconcile broke off
// before the handler.
func (r Result) Reasons(readers []progress.Handler) []Why {
	rest := why.NothingDue
	if r.Err != nil || r.Vanished {
		rest = why.Reason{}
	}
	found := make(map[string]Why, len(r.Ended)+len(r.Why))
	for _, a := range r.Ended {
		found[a.Handler.ID] = Why{Handler: a.Handler.ID, Cause: a.Cause, Reason: why.Ran}
	}
	for _, w := range r.Why {
		found[w.Handler] = w
	}
	out := make([]Why, 0, len(readers))
	for _, reader := range readers {
		w, is := found[reader.ID]
		if !is {
			w = Why{Handler: reader.ID, Reason: rest}
		}
		out = append(out, w)
	}
	return out
}

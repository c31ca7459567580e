// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// Why says of one handler why it ran in a reconcile, or why not.
type Why struct {
	Handler string
	// Cause is what it ran for, or would run for; empty where nothing is due.
	Cause  dsl.Cause
	Reason why.Reason
	// Detail has the facts, empty where the reason says all.
	Detail string
}

// String says it for the log.
func (w Why) String() string {
	if w.Detail == "" {
		return w.Reason.String()
	}
	return fmt.Sprintf("%s: %s", w.Reason, w.Detail)
}

// Reasons says of each of a resource's handlers, in their order, why it ran in the reconcile, or why not. The reason is empty where the
// reconcile broke off before it came to the handler.
func (r Result) Reasons(readers []progress.Handler) []Why {
	rest := why.NothingDue
	if r.Err != nil || r.Vanished {
		rest = why.Reason{}
	}
	found := make(map[string]Why, len(r.Attempts)+len(r.Why))
	for _, a := range r.Attempts {
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

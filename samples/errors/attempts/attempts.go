// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package attempts has the function of samples/errors and samples/steps.
package attempts

import (
	"context"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// attempt says how a handler fails.
type attempt struct {
	// Failures is how many attempts fail before one succeeds.
	Failures int `json:"failures"`
	// With is permanent, for a permanent error, or a time such as 100ms, for a temporary error with that time.
	// Empty means a plain error, for which the handler's own options apply.
	With string `json:"with,omitempty"`
}

// Fail fails as often as its parameters say. It writes the number of attempts to the status, also when it
// fails.
func Fail(_ context.Context, r *dsl.Request) error {
	var want attempt
	if err := r.Params.Into(&want); err != nil {
		return dsl.Permanent(err)
	}
	r.Patch.SetStatus("attempts."+r.Handler, r.Attempt)
	if r.Attempt > want.Failures {
		return nil
	}
	err := fmt.Errorf("attempt %d was to fail", r.Attempt)
	if want.With == "" {
		return err
	}
	if want.With == "permanent" {
		return dsl.Permanent(err)
	}
	pause, wrong := time.ParseDuration(want.With)
	if wrong != nil {
		return dsl.Permanent(wrong)
	}
	return dsl.Temporary(err, pause)
}

// Functions registers the function.
func Functions(r *actions.Registry) {
	r.Function(dsl.Function{
		Name: "attempts.Fail", Func: Fail, Doc: "fails as often as its parameter says", Params: attempt{},
		Needs: []dsl.Need{dsl.MustParseNeed("patch", "self/status")},
	})
}

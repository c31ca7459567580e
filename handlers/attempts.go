// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"fmt"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
)

// attempt is how a handler is to fail.
type attempt struct {
	// Failures are how many attempts fail before one succeeds.
	Failures int `json:"failures"`
	// With is permanent, for an error after which no attempt follows, or a time such as 100ms, after which the next one does.
	// Empty is a plain error, and what becomes of that says the handler.
	With string `json:"with,omitempty"`
}

// AttemptFail fails as often as its parameters say. How many attempts there were is in the status, also after one that failed.
func AttemptFail(_ context.Context, r *dsl.Request) error {
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

// Attempts registers the function of samples/errors and samples/steps.
func Attempts(r *actions.Registry) {
	r.Function(dsl.Function{
		Name: "attempts.Fail", Func: AttemptFail, Doc: "fails as often as it is told to", Params: attempt{},
		Needs: []dsl.Need{dsl.MustParseNeed("patch", "self/status")},
	})
}

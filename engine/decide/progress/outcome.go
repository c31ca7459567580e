// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Outcome returns the outcome of the entry's handler for handlers that read it. Now is the handler's present try.
func (e Entry) Outcome(now Record) dsl.Outcome {
	out := dsl.Outcome{State: dsl.OutcomeNever}
	switch fails := now.Failures() > 0 && (!now.Waiting || now.Parts != nil); {
	case now.Done && !now.Failed:
		out.State = dsl.OutcomeDone
	case now.Failed:
		out = dsl.Outcome{State: dsl.OutcomeFailed, Message: now.Message, Attempts: now.Attempts}
	case fails:
		out = dsl.Outcome{State: dsl.OutcomeFailed, Message: now.Message, Attempts: now.Failures(), NextTry: now.nextTry()}
	case now.Waiting:
		out = dsl.Outcome{State: dsl.OutcomeWaiting, Message: now.Message, Attempts: now.Attempts}
	case e.FailedFor != "":
		out = dsl.Outcome{State: dsl.OutcomeFailed, Message: "it failed for good", Attempts: 1}
	case e.Handled != "" && !e.AsFound:
		out.State = dsl.OutcomeDone
	}
	return out
}

// nextTry returns when the next attempt counts, in whole seconds, so that it equals a stored time.
func (r Record) nextTry() time.Time {
	at := r.Due
	if !r.Early.IsZero() {
		at = r.Early
	}
	return at.Round(0).UTC().Truncate(time.Second)
}

// Unasked returns the outcome of a handler whose filter failed.
func Unasked(message string) dsl.Outcome {
	return dsl.Outcome{State: dsl.OutcomeFailed, Message: shorten(message)}
}

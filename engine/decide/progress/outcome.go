// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Outcome returns what came of the entry's handler, for others that read it. Now is the handler's try as far as it has come.
func (e Entry) Outcome(now Record) dsl.Outcome {
	out := dsl.Outcome{State: dsl.OutcomeNever}
	switch fails := now.Worst() > 0 && (!now.Waiting || now.Parts != nil); {
	case now.Done && !now.Failed:
		out.State = dsl.OutcomeDone
	case now.Failed:
		out = dsl.Outcome{State: dsl.OutcomeFailed, Message: now.Message, Attempts: now.Attempts}
	case fails:
		out = dsl.Outcome{State: dsl.OutcomeFailed, Message: now.Message, Attempts: now.Worst(), NextTry: now.nextTry()}
	case now.Waiting:
		out = dsl.Outcome{State: dsl.OutcomeWaiting, Message: now.Message, Attempts: now.Attempts}
	case e.FailedFor != "":
		out = dsl.Outcome{State: dsl.OutcomeFailed, Message: "it failed for good", Attempts: 1}
	case e.Handled != "" && !e.AsFound:
		out.State = dsl.OutcomeDone
	}
	return out
}

// nextTry is when the next attempt counts, in whole seconds: a stored time is the same one.
func (r Record) nextTry() time.Time {
	at := r.Due
	if !r.Early.IsZero() {
		at = r.Early
	}
	return at.Round(0).UTC().Truncate(time.Second)
}

// Unasked is the outcome of a handler whose filter failed.
func Unasked(message string) dsl.Outcome {
	return dsl.Outcome{State: dsl.OutcomeFailed, Message: shorten(message)}
}

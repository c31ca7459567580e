// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package saying

import (
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// Failure is an attempt that has failed.
type Failure struct {
	Job *plan.Job
	// Before is the handler's record as it was before the attempt.
	Before progress.Record
	Err    error
	// Known: the log tells of such errors once for all.
	Known bool
}

// Complain says in the log that an attempt failed, and notes what the log is to tell the end of. An attempt that was
// none, because children or related objects hurried it, is told when it failed otherwise than before.
func Complain(log logr.Logger, troubles *attempt.Troubles, f Failure) {
	record, id, err := f.Job.Record, f.Job.Reader.ID, f.Err.Error()
	again := max(0, time.Until(record.Due)).Round(time.Millisecond).String()
	same := !f.Before.Early.IsZero() && f.Before.Message == record.Message
	told := record.Failed || !same && !f.Known
	if f.Job.Through() {
		log.Info("handler failed, which counts as success", logmark.Warning, told, "error", err)
		troubles.Mended(log, id, "handler works again")
		return
	}
	troubles.Failed(id, told)
	switch {
	case record.Failed:
		log.Error(f.Err, "handler failed for good")
	case told:
		log.Info("handler will be tried again", logmark.Warning, true, "error", err, "retryAfter", again)
	default:
		log.V(1).Info("handler will be tried again", "error", err, "retryAfter", again)
	}
}

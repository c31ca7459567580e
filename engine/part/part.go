// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package part runs the sub-handlers that a handler declares while it runs, within the handler's own attempt.
package part

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/progress"
)

// Of returns a handler that runs its sub-handlers, too, when its function has returned without an error. Known is how far they
// had come; after the handler has run, it is how far they have.
func Of(h *dsl.Handler, known **progress.Parts) *dsl.Handler {
	out := *h
	out.Func = func(ctx context.Context, r *dsl.Request) error {
		r.Parts = &dsl.Parts{}
		if err := h.Func(ctx, r); err != nil {
			return err
		}
		return run(ctx, r, known)
	}
	return &out
}

// run runs those that are due of the sub-handlers that a request has declared. The error says for which of them the handler
// waits, or which have failed for good.
func run(ctx context.Context, r *dsl.Request, known **progress.Parts) error {
	all, wrong := r.Parts.Declared()
	if wrong != nil {
		return dsl.Permanent(wrong)
	}
	var ids, open, failed []string
	wait := time.Duration(-1)
	for _, h := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ids = append(ids, h.ID)
		record := one(ctx, h, r, (*known).Get(h.ID))
		if record != (progress.Record{}) {
			*known = (*known).With(h.ID, record)
		}
		said := h.ID
		if record.Message != "" {
			said += ": " + record.Message
		}
		switch {
		case record.Failed:
			failed = append(failed, said)
		case !record.Done && record != progress.Record{}:
			open = append(open, said)
			if left := max(record.Waits(time.Now()), time.Nanosecond); wait < 0 || left < wait {
				wait = left
			}
		}
	}
	*known = (*known).Only(ids)
	switch {
	case len(open) > 0:
		return dsl.Waiting("sub-handlers ("+strings.Join(open, "; ")+")", wait)
	case len(failed) > 0:
		return dsl.Permanent(fmt.Errorf("sub-handlers failed for good: %s", strings.Join(failed, "; ")))
	}
	return nil
}

// one runs a sub-handler when it is due, and returns its record; an empty one where it does not see the object.
func one(ctx context.Context, h *dsl.Handler, parent *dsl.Request, record progress.Record) progress.Record {
	if record.Done || record.Waits(time.Now()) > 0 {
		return record
	}
	r := request(h, parent, record)
	if sees, err := asked(h, r); err != nil {
		return told(r, record.Fail(h, err, time.Now()), err)
	} else if !sees {
		return progress.Record{}
	}
	if late := record.Overdue(h, time.Now()); late != nil {
		return told(r, record.Fail(h, late, time.Now()), late)
	}
	record = record.Start(h, time.Now())
	parts := record.Parts
	err := attempt.Part(ctx, Of(h, &parts), r, record.Ends(h))
	if attempt.Void(err) {
		return told(r, record.Fail(h, err, time.Now()), err)
	}
	parent.Patch.Join(r.Patch)
	if r.Again != nil {
		parent.RunAgain(*r.Again)
	}
	record.Step, record.Parts = r.Step, parts
	most, waits := attempt.Waits(err)
	switch {
	case err == nil:
		return record.Succeed()
	case waits:
		return record.Wait(h, err, most, time.Now())
	}
	return told(r, record.Fail(h, err, time.Now()), err)
}

// asked asks the filters of a sub-handler.
func asked(h *dsl.Handler, r *dsl.Request) (bool, error) {
	if !filter.Chooses(h, r.Object) {
		return false, nil
	}
	if h.When == nil {
		return true, nil
	}
	sees, err := attempt.Ask(h.When, &r.Subject)
	if err != nil {
		return false, fmt.Errorf("asking filter: %w", err)
	}
	return sees, nil
}

// request is what a sub-handler gets.
func request(h *dsl.Handler, parent *dsl.Request, record progress.Record) *dsl.Request {
	r := *parent
	r.Handler, r.Object, r.Patch, r.Parts = parent.Handler+"/"+h.ID, parent.Object.DeepCopy(), dsl.NewPatch(), &dsl.Parts{}
	r.Attempt, r.Step = record.Attempts+1, record.Step
	r.Log = parent.Log.WithValues("subHandler", r.Handler, "subAttempt", r.Attempt)
	return &r
}

// told says in the log that a sub-handler has failed.
func told(r *dsl.Request, record progress.Record, err error) progress.Record {
	switch {
	case record.Failed:
		r.Log.Error(err, "sub-handler failed for good")
	case record.Done:
		r.Log.Info("sub-handler failed, which counts as success", logmark.Warning, true, "error", err.Error())
	default:
		again := max(0, time.Until(record.Due)).Round(time.Millisecond).String()
		r.Log.Info("sub-handler will be tried again", logmark.Warning, true, "error", err.Error(), "retryAfter", again)
	}
	return record
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Errors recognises errors of an outage, and others that the log reports once for all handlers.
type Errors interface {
	// Logged reports whether one line of the log stands for all errors of this kind.
	Logged(err error) bool
	// Covered reports whether an error comes from an outage of the API server that the log has. Unreached reports
	// whether an attempt failed for that reason alone.
	Covered(err error) bool
	Unreached(err error) bool
}

// SubhandlerSettings are the settings for the sub-handlers of one resource. All are required.
type SubhandlerSettings struct {
	// Resource is the resource's name, for metrics.
	Resource string
	Metrics  *ops.Metrics
	Errors   Errors
	// Texts bounds the log of errors that many objects share.
	Texts *Texts
}

// Subhandlers runs one attempt of a handler with its sub-handlers.
type Subhandlers struct {
	*SubhandlerSettings
	// Troubles are the logged failures of the object's handlers.
	Troubles *Troubles
	// Known has the records of the sub-handlers, before and then after the attempt.
	Known *progress.Parts
	// Sound: the handler's own code has returned in time, so its changes are kept even if a sub-handler fails.
	Sound bool
	// Failed is the error of a sub-handler that failed in this attempt, nil for none. An error for a missing right or by
	// a policy wins.
	Failed error
}

// Around returns code that runs a handler, and then its sub-handlers if it succeeds.
func (a *Subhandlers) Around(code dsl.Func) dsl.Func {
	return func(ctx context.Context, r *dsl.Request) error {
		r.Parts = &dsl.Parts{}
		if err := code(ctx, r); err != nil || ctx.Err() != nil {
			return err
		}
		a.Sound = true
		err := a.all(ctx, r)
		if _, late := r.Parts.Declared(); late != nil {
			return dsl.Permanent(late)
		}
		return err
	}
}

// all runs the due sub-handlers of a request. The error says which sub-handlers the handler waits for, or which have
// failed for good.
func (a *Subhandlers) all(ctx context.Context, r *dsl.Request) error {
	all, wrong := r.Parts.Declared()
	if wrong != nil {
		return dsl.Permanent(wrong)
	}
	var ids, open, failed []string
	wait, ended := time.Duration(-1), true
	for _, h := range all {
		ids = append(ids, h.ID)
		record := a.one(ctx, h, r, a.Known.Get(h.ID))
		if record != (progress.Record{}) {
			a.Known = a.Known.With(h.ID, record)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("running sub-handler %s: %w", h.ID, ctx.Err())
		}
		said := h.ID
		if record.Message != "" {
			said += ": " + record.Message
		}
		switch {
		case record.Failed:
			failed, ended = append(failed, said), ended && record.Ended
		case !record.Done && record != progress.Record{}:
			open = append(open, said)
			if left := max(record.Remaining(time.Now()), time.Nanosecond); wait < 0 || left < wait {
				wait = left
			}
		}
	}
	a.Known = a.Known.Only(ids)
	switch then := r.Parts.Finally(); {
	case len(open) > 0:
		return dsl.Waiting("sub-handlers ("+strings.Join(open, "; ")+")", wait)
	case len(failed) > 0:
		return dsl.Permanent(&failedParts{strings.Join(failed, "; "), ended})
	case then != nil:
		return finally(ctx, then, r)
	}
	return nil
}

// errEnded is the error of a handler whose sub-handlers have failed for good because the namespace is being deleted.
var errEnded = errors.New("the namespace is being deleted")

// failedParts lists the sub-handlers that have failed for good. Ended: all failed because the namespace is being
// deleted.
type failedParts struct {
	said  string
	ended bool
}

// Error names the sub-handlers with their errors.
func (e *failedParts) Error() string { return "sub-handlers failed for good: " + e.said }

// Is reports whether the namespace is being deleted. [Note] asks for that by errors.Is.
func (e *failedParts) Is(target error) bool { return e.ended && target == errEnded }

// finally runs the handler's final function. Its changes are kept if it returns in time; the sub-handlers' changes are
// kept in any case.
func finally(ctx context.Context, then dsl.Func, r *dsl.Request) error {
	own := *r
	own.Patch = dsl.NewPatch()
	err := Part(ctx, &dsl.Handler{}, then, &own, time.Time{})
	if !Void(err) {
		r.Patch.Join(own.Patch)
	}
	return err
}

// one runs a sub-handler if it is due, and returns its record. The record is empty if the filters exclude the object.
func (a *Subhandlers) one(ctx context.Context, h *dsl.Handler, parent *dsl.Request, record progress.Record) progress.Record {
	if record.Done || record.Remaining(time.Now()) > 0 {
		return record
	}
	r := request(h, parent, record)
	sees, err := asked(h, r)
	switch {
	case err != nil:
		return a.unanswered(h, r, record, err)
	case record.Unasked > 0:
		a.Troubles.LogRecovered(r.Log, r.Handler, "filter can be asked again")
		record.Unasked = 0
	}
	if !sees {
		a.Troubles.Rest(r.Handler)
		return progress.Record{}
	}
	if late := record.Overdue(h, time.Now()); late != nil {
		return a.note(h, r, record, late, 0)
	}
	start := time.Now()
	record = record.Start(h, start)
	inner := &Subhandlers{SubhandlerSettings: a.SubhandlerSettings, Troubles: a.Troubles, Known: record.Parts}
	err = Part(ctx, h, inner.Around(h.Func), r, record.Deadline(h))
	if !Void(err) || inner.Sound || r.Patch.Finished {
		parent.Patch.Join(r.Patch)
		record.Step, record.Parts = r.Step, inner.Known
	}
	if r.Again != nil {
		parent.RunAgain(*r.Again)
	}
	if inner.Failed != nil {
		a.Failed = inner.Failed
	}
	if ctx.Err() != nil && err != nil {
		return record // the time of the parent or of the process is over, not its own
	}
	return a.note(h, r, record, err, time.Since(start))
}

// note returns the record of a sub-handler after an attempt, and reports the attempt.
func (a *Subhandlers) note(h *dsl.Handler, r *dsl.Request, before progress.Record, err error, took time.Duration) progress.Record {
	after := Note(h, before, err, time.Now(), Home(r.Object), a.Errors.Unreached)
	parent, _, _ := strings.Cut(r.Handler, "/")
	a.Metrics.Handled(ops.HandlerRun{
		Resource: a.Resource, Handler: parent + "/*", Cause: r.Cause, Outcome: Outcome(err, after.Done, after.Failed), Duration: took,
	})
	_, waits := Waits(err)
	switch {
	case err == nil:
		a.Troubles.Works(r.Log, r.Handler)
	case !waits:
		a.complain(r, err, false, before, after)
		if a.Failed == nil || backoff.IsRejected(err) {
			a.Failed = err
		}
	}
	return after
}

// unanswered returns the record of a sub-handler whose filter failed. It logs the failure once for each text.
func (a *Subhandlers) unanswered(h *dsl.Handler, r *dsl.Request, before progress.Record, err error) progress.Record {
	after := before.Unanswered(h, err, time.Now())
	said := before.Unasked > 0 && before.Message == after.Message
	a.complain(r, err, said, before, after)
	if a.Failed == nil || backoff.IsRejected(err) {
		a.Failed = err
	}
	return after
}

// complain logs that a sub-handler has failed. Known: it has failed with the same text before.
func (a *Subhandlers) complain(r *dsl.Request, err error, known bool, before, after progress.Record) {
	f := Failure{Log: r.Log, Handler: r.Handler, Err: err, Known: known}
	if r.Object != nil {
		f.Key = cache.MetaObjectToName(r.Object)
	}
	a.Troubles.Complain(a.Texts, Attempt{Failure: f, Before: before, After: after, Covered: a.Errors.Logged(err)})
}

// asked evaluates the filters of a sub-handler.
func asked(h *dsl.Handler, r *dsl.Request) (bool, error) {
	if !filter.Matches(h, r.Object) || !touched(h, r) {
		return false, nil
	}
	if h.When == nil {
		return true, nil
	}
	sees, err := Ask(h.When, &r.Subject)
	if err != nil {
		return false, fmt.Errorf("asking filter: %w", err)
	}
	return sees, nil
}

// touched reports whether one of the sub-handler's fields has changed, or exists if the changes are unknown. It limits
// the request's changes to these fields.
func touched(h *dsl.Handler, r *dsl.Request) bool {
	if len(h.Fields) == 0 {
		return true
	}
	there, all := false, r.Diff
	r.Diff = nil
	for _, path := range h.Fields {
		_, found := path.In(r.Object.Object)
		there = there || found
		r.Diff = append(r.Diff, progress.Within(all, path)...)
	}
	if r.Old != nil {
		return len(r.Diff) > 0
	}
	return there
}

// request returns the request of a sub-handler.
func request(h *dsl.Handler, parent *dsl.Request, record progress.Record) *dsl.Request {
	r := *parent
	r.Handler, r.Object, r.Patch, r.Parts = parent.Handler+"/"+h.ID, parent.CopyObject(), dsl.NewPatch(), &dsl.Parts{}
	r.Attempt, r.Step = record.Attempts+1, record.Step
	r.Log = parent.Log.WithValues("subHandler", r.Handler, "subAttempt", r.Attempt)
	return &r
}

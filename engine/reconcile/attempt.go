// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/expiry"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cluster/events"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// Ended is one finished attempt of a handler.
type Ended struct {
	Handler *dsl.Handler
	Cause   dsl.Cause
	// Attempt is the number of the attempt, from 1.
	Attempt int
	Took    time.Duration
	// Err is the attempt's error, nil for none. Trouble has details of it.
	Err     error
	Trouble *Trouble
}

// manyAtOnce is the initial capacity for attempts.
const manyAtOnce = 16

// Trouble has the details of an attempt that returned an error.
type Trouble struct {
	// Before and After are the handler's record.
	Before, After progress.Record
	// Part is the error of a sub-handler that failed in the attempt, nil for none.
	Part error
	// Logged: one line of the log stands for all errors of this kind. Warned: the handler has sent a warning of its own.
	Logged, Warned bool
}

// attempt makes an attempt if it is due, and records its outcome. It returns an error if the process or its leadership
// ends.
func (p *run) attempt(ctx context.Context, st State, j *Attempt) (State, error) {
	st, runs := p.mayRun(st, j)
	if !runs {
		return st, nil
	}
	st, err := p.ensureFinalizer(ctx, st)
	if err != nil {
		return st, err
	}
	span := transport.NewSpan(p.Host.Held)
	return p.call(ctx, st, j, p.request(st, j, span), span)
}

// mayRun reports whether an attempt may begin now, and notes the reason if not.
func (p *run) mayRun(st State, j *Attempt) (State, bool) {
	w, wait := p.postponed(st, j)
	j.NeverRuns = w.Reason == why.Blocked && p.blocksForGood(st, w.Detail)
	if wait > 0 {
		st.Due = st.Due.Sooner(wait, queue.Due)
	}
	if !w.Reason.None() {
		st.Why = append(st.Why, w)
		return st, false
	}
	if late := j.Record.Overdue(j.Reader.Handler, time.Now()); late != nil {
		st = p.record(st, j, late, 0)
		st.Why = append(st.Why, Why{Handler: j.Reader.ID, Cause: j.Cause, Reason: why.DeadlineOver})
		p.close(st, j)
		return st, false
	}
	return st, true
}

// call runs the code of an attempt's handler with a request, in the span in which the request may write.
func (p *run) call(ctx context.Context, st State, j *Attempt, request *dsl.Request, span *transport.Span) (State, error) {
	p.family.Claims.Begin(j.Reader.ID, j.Record.DoneParts())
	j.Saw = st.Look.Digest(j.Reader.View)
	start := time.Now()
	j.Record = j.Record.Start(j.Reader.Handler, start)
	leave := p.Running.Enter(p.Key, j.Reader.ID)
	parts := attempt.Subhandlers{SubhandlerSettings: &p.Subhandlers, Troubles: &p.memory.Troubles, Known: j.Record.Parts}
	code := j.Reader.Handler
	if code.Machine != nil {
		code = p.Machines.Code(j, p.memory, p.Gone, p.resolve)
	}
	traced := p.startSpan(ctx, j)
	err := attempt.Run(expiry.Restoring(discreet(traced, j.Reader), j.Reader.Restores()), code, parts.Around(code.Func), request, j.Record.Deadline(j.Reader.Handler), span)
	p.endSpan(traced, err)
	request.Broke(err)
	leave()
	if ctx.Err() != nil {
		return st, ctx.Err()
	}
	if span.Lost() || !p.Host.Held(ctx) { // the loss of leadership may be why the handler failed
		return st, fmt.Errorf("running handler %s: %w", j.Reader.ID, transport.ErrNotLeading)
	}
	p.Machines.Did(j, p.memory)
	if reporter, is := request.Events.(*events.Reporter); is {
		j.Warned = reporter.Warned()
	}
	return p.outcome(ctx, st, j, request, &parts, err, time.Since(start))
}

// outcome merges the handler's patch into the draft, and records its error.
func (p *run) outcome(ctx context.Context, st State, j *Attempt, request *dsl.Request, parts *attempt.Subhandlers, err error, took time.Duration) (State, error) {
	counts := !attempt.Void(err) || parts.Sound || request.Patch.Finished
	if counts {
		j.Failed, j.Again = parts.Failed, request.Again
		var wrong, ends error
		if st, wrong, ends = p.merge(ctx, st, j, request.Patch); ends != nil {
			p.void(j)
			return st, ends
		}
		if err = attempt.JoinPatchError(err, wrong); wrong == nil {
			j.Record.Step, j.Record.Parts = request.Step, parts.Known
		}
	}
	if counts && p.memory.Rejected[j.Reader.ID] {
		var rejected error
		if st, rejected = p.dryRun(ctx, st, j); rejected != nil {
			return p.fault(ctx, st, j, rejected)
		}
	}
	p.family.Claims.Finish(j.Reader.ID, err == nil)
	st = p.record(st, j, err, took)
	p.close(st, j)
	return st, nil
}

// startSpan begins the span of an attempt, if there is a tracer.
func (p *run) startSpan(ctx context.Context, j *Attempt) context.Context {
	if p.Tracer == nil {
		return ctx
	}
	return p.Tracer.Start(ctx, "handler "+j.Reader.ID, "handler", j.Reader.ID, "cause", string(j.Cause), "attempt", strconv.Itoa(j.Record.Attempts+1))
}

func (p *run) endSpan(ctx context.Context, err error) {
	if p.Tracer != nil {
		p.Tracer.End(ctx, err)
	}
}

// ensureFinalizer adds the finalizer before the first handler of an object runs. If no handler runs, the reconcile's own
// write adds it.
func (p *run) ensureFinalizer(ctx context.Context, st State) (State, error) {
	there := slices.Contains(p.family.Base().GetFinalizers(), p.Rules.Finalizer)
	if there || p.Deletion != "" || !p.wantsFinalizer(st.Draft) {
		return st, nil
	}
	marks := patch.Marks{Finalizer: p.Rules.Finalizer, Earlier: p.Rules.Earlier, Add: true}
	st, base, err := p.sendMarks(ctx, st, p.Object, marks)
	if err == nil {
		p.family.Rebase(base)
	}
	return st, err
}

// merge applies a handler's patch to the draft, so that later handlers see it. Wrong is an error in the patch, which
// fails the attempt. Ends is an error that ends the reconcile.
func (p *run) merge(ctx context.Context, st State, j *Attempt, wants *dsl.Patch) (next State, wrong, ends error) {
	j.Offers = len(wants.Offered) > 0
	set := st.Explicit
	if j.Machine != nil {
		set = nil // the last of several machines computes Ready with the results of the others
	}
	st.Explicit = append(slices.Clip(st.Explicit), wants.Conditions...)
	wants, err := p.offered(ctx, wants, set)
	if err != nil {
		return st, nil, err
	}
	made, wrong := p.resolve(st.Current, j, wants)
	if j.Wants = wants; wrong != nil || made.Empty() {
		j.Wants = made // do not run transformations again that fail or change nothing
	}
	st.Draft = st.With(made, p.generation(), p.Now)
	return st, wrong, nil
}

// offered returns the handler's patch with its offered conditions, if the resource has conditions and no handler has set
// them. It drops the removal of conditions that others set.
func (p *run) offered(ctx context.Context, wants *dsl.Patch, set []metav1.Condition) (*dsl.Patch, error) {
	var err error
	if len(wants.Offered)+len(wants.Conditions) > 0 {
		wants, err = p.Writer.Conditions.Offered(ctx, wants, set)
	}
	if err == nil && len(wants.Retired) > 0 {
		wants.Retired = slices.DeleteFunc(wants.Retired, p.keepsCondition)
	}
	return wants, err
}

// record records the end of an attempt.
func (p *run) record(st State, j *Attempt, err error, took time.Duration) State {
	j.Ran = true
	before, now := j.Record, time.Now()
	j.Record = attempt.Note(j.Reader.Handler, before, err, now, attempt.Home(p.Object), p.Host.Unreached)
	st = p.slow(st, j, before, now)
	done := Ended{Handler: j.Reader.Handler, Cause: j.Cause, Attempt: before.Attempts + 1, Took: took, Err: err}
	if err != nil {
		done.Trouble = &Trouble{Before: before, After: j.Record, Part: j.Failed, Logged: p.Host.Logged(err), Warned: j.Warned}
		if _, waits := attempt.Waits(err); waits {
			j.Logged = done.Trouble.Logged
		}
	}
	if st.Ended == nil {
		st.Ended = make([]Ended, 0, min(len(p.Rules.Readers), manyAtOnce))
	}
	st.Ended = append(st.Ended, done)
	if j.Failed != nil {
		err = j.Failed // the sub-handler may lack a right
	}
	p.Host.Refused(p.Key, j.Reader.ID, err)
	if wait := j.Record.Remaining(time.Now()); !j.Record.Done {
		st.Due = st.Due.Sooner(wait, queue.Due)
	}
	return st
}

// close merges the outcome of an attempt into the progress. The handler's own changes are no trigger for it, but they
// are for other handlers that look at them.
func (p *run) close(st State, j *Attempt) {
	j.Left = st.Look.Digest(j.Reader.View)
	var kept map[string]any
	if j.Reader.Old {
		kept = st.Look.Kept(j.Reader.View)
	}
	e := j.Entry
	e.Try = j.Record
	if j.Record.Done && j.Cause == dsl.Timer {
		e = e.RanFor(j.At)
	}
	p.progress.Put(j.Reader, e.End(j.Reader.View, j.Left, kept))
	if j.Record.Done && !j.Record.Failed {
		p.progress.RetryAfter(j.Reader)
	}
}

// void drops the outcome of an attempt from the progress, so that the handler runs again.
func (p *run) void(j *Attempt) { p.progress.Put(j.Reader, j.Void()) }

// blocker returns the first handler in this one's `after` that is not through, may still be due, or failed for good. It
// is empty if no handler blocks this one.
func (p *run) blocker(st State, h *dsl.Handler) string {
	if len(h.After) == 0 {
		return ""
	}
	for _, r := range p.Rules.Readers {
		if slices.Contains(h.After, r.ID) && p.blocks(st, r) {
			return r.ID
		}
	}
	return ""
}

// blocksForGood reports whether handlers after this one never run: it has failed for good in a deletion, and does not
// hold the object.
func (p *run) blocksForGood(st State, handler string) bool {
	return p.Deletion != "" && slices.ContainsFunc(p.Rules.Readers, func(r progress.Handler) bool {
		if r.ID != handler {
			return false
		}
		e, j := p.progress.Entry(r), st.Attempts.Of(r)
		return j != nil && j.NeverRuns || e.DeleteDone(p.Deletion) && e.Try.Failed && (r.Release || e.Try.Ended)
	})
}

// blocks reports whether handlers that come after this one have to wait.
func (p *run) blocks(st State, r progress.Handler) bool {
	if j := st.Attempts.Of(r); j != nil {
		return !j.Through()
	}
	if p.filters.WasDue(r.ID) || st.isOutcomeMissing(r) {
		return true
	}
	e := p.progress.Entry(r)
	failed := e.FailedFor != "" && p.Deletion == "" || p.Deletion != "" && e.DeleteDone(p.Deletion) && e.Try.Failed
	return failed && p.askFilters(st.Draft, r, askFor(r.Handler)).Keeps()
}

// postponed returns why an attempt does not run in this reconcile. The reason is empty if it runs.
func (p *run) postponed(st State, j *Attempt) (w Why, wait time.Duration) {
	if now := p.paused(); now != nil {
		return Why{Handler: j.Reader.ID, Cause: j.Cause, Reason: why.Paused, Detail: now.String()}, 0
	}
	return p.early(st, j)
}

// early returns why an attempt may not run yet: its time has not come, or a handler blocks it. The reason is empty if it
// may run.
func (p *run) early(st State, j *Attempt) (w Why, wait time.Duration) {
	w = Why{Handler: j.Reader.ID, Cause: j.Cause}
	if wait := j.Record.Remaining(p.Now); wait > 0 {
		w.Reason, w.Detail = why.BackOff, p.Now.Add(wait).Format(time.RFC3339)
		return w, wait
	}
	if other := p.blocker(st, j.Reader.Handler); other != "" {
		w.Reason, w.Detail = why.Blocked, other
	}
	return w, 0
}

// paused returns a pause that began during the reconcile, or nil.
func (p *run) paused() *pause.Pause {
	if now := p.Pauses.Around(p.Key.Namespace, p.Deletion != ""); now != nil {
		return now
	}
	if newest, found := p.Own.Get(p.Key); found && newest != p.Version && newest.GetUID() == p.Object.GetUID() {
		return p.Pauses.By(newest, p.Deletion != "")
	}
	return nil
}

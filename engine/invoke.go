// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cause"
	"github.com/handwerk-dev/handwerk/engine/claim"
	"github.com/handwerk-dev/handwerk/engine/events"
	"github.com/handwerk-dev/handwerk/engine/family"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// errPanic and errTimeout are wrapped by the errors of handlers that panicked, and that did not
// return in time.
var (
	errPanic   = errors.New("panic")
	errTimeout = errors.New("the timeout passed")
)

// attempt runs a job when it is due and notes its outcome. The error is that of a pass that must
// end, because the process or its leadership does.
func (p *pass) attempt(ctx context.Context, j *job) error {
	if wait := j.record.Waits(p.now); wait > 0 {
		p.next = p.next.sooner(wait, queue.Due)
		return nil
	}
	if p.blocked(j.reader.Handler) {
		return nil
	}
	if err := p.secure(ctx); err != nil {
		return err
	}
	p.family.Claims.Run(j.reader.ID, j.record.Step)
	j.saw = p.sight.Digest(j.reader.View)
	s := fence.NewSpan(p.r.engine.held)
	request := p.request(j, s)
	start := time.Now()
	leave := p.r.busy.Enter(p.key, j.reader.ID)
	err := invoke(ctx, j.reader.Handler, request, s.Begin)
	leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if reporter, is := request.Events.(*events.Reporter); is {
		j.warned = reporter.Warned()
	}
	if !overran(err) {
		j.record.Step = request.Step
		if err := p.lay(ctx, j, request.Patch); err != nil {
			p.void(j)
			return err
		}
		if said := p.probe(ctx, j); said != nil {
			p.fault(j, said)
			return nil
		}
	}
	p.family.Claims.Ran(j.reader.ID, err == nil)
	p.note(j, err, time.Since(start))
	p.finish(j)
	return nil
}

// blocked reports whether a handler that this one comes after is not through yet, or failed for good.
// Either way this one has no outcome.
func (p *pass) blocked(h *dsl.Handler) bool {
	return slices.ContainsFunc(p.r.rules.readers, func(r book.Reader) bool {
		if !slices.Contains(h.After, r.ID) {
			return false
		}
		if i := slices.IndexFunc(p.jobs, func(j *job) bool { return j.reader.Handler == r.Handler }); i >= 0 {
			return !p.jobs[i].record.Done || p.jobs[i].record.Failed
		}
		e := p.entry(r)
		failed := e.Lost != "" && p.deletion == "" || p.deletion != "" && e.Parted(p.deletion) && e.Try.Failed
		return failed && p.answer(&job{reader: r, cause: causeOf(r.Handler)}).holds
	})
}

// note records the outcome of an attempt, and says it where people look.
func (p *pass) note(j *job, err error, took time.Duration) {
	j.ran = true
	before, log := j.record, p.log().WithValues("handler", j.reader.ID, "cause", string(j.cause), "attempt", j.record.Attempts+1)
	most, waiting := waits(err)
	switch {
	case err == nil:
		j.record = j.record.Succeed()
		log.V(1).Info("handler succeeded", "took", took.String())
		p.memory.mended(log, j.reader.ID, "handler works again")
	case waiting:
		j.record = j.record.Wait(err, most, time.Now())
		log.V(1).Info("handler waits", "reason", err.Error(), "most", most.String())
	default:
		j.record = bounded(j.record.Fail(j.reader.Handler, err, time.Now()), j.reader.Handler, err, time.Now())
		p.complain(log, j, before, err)
	}
	p.r.refused(p.key, j.reader.ID, err)
	p.r.engine.metrics.Handled(ops.HandlerRun{
		Resource: p.r.name, Handler: j.reader.ID, Cause: j.cause,
		Outcome: outcome(err, j.record.Failed), Duration: took,
	})
	if wait := j.record.Waits(time.Now()); !j.record.Done {
		p.next = p.next.sooner(wait, queue.Due)
	}
}

// subject is what a handler and its filters are asked about.
func (p *pass) subject(j *job, children dsl.ChildReader) *dsl.Subject {
	out := &dsl.Subject{
		Object: p.current.DeepCopy(), Cause: j.cause, Event: p.event(j), Attempt: j.record.Attempts + 1,
		Children: children, Made: p.r.spec.Made(), Now: p.now, Related: p.related,
		Log: p.log().WithValues("handler", j.reader.ID, "cause", string(j.cause), "attempt", j.record.Attempts+1),
	}
	if j.cause != dsl.Create && !p.whole {
		p.recollect(j, out)
	}
	return out
}

// request is what the handler gets.
func (p *pass) request(j *job, s *fence.Span) *dsl.Request {
	h := j.reader.Handler
	children := p.family.For(s, claim.Attempt{Handler: h.ID, Try: string(j.cause) + "/" + j.record.View, Turns: p.turns(j)})
	if p.whole {
		children = family.None(errNoObject)
	}
	request := &dsl.Request{Subject: *p.subject(j, children), Children: children, Step: j.record.Step, Patch: dsl.NewPatch(), Client: p.client(h, s)}
	if p.whole {
		p.asWhole(request, s)
	} else {
		request.Events = p.r.engine.events.Reporter(p.object, h.ID, s.Over)
	}
	return request
}

// turns says how the handlers fare that have something to do in this pass before a job.
func (p *pass) turns(before *job) (out []claim.Turn) {
	for _, j := range p.jobs {
		if j != before {
			out = append(out, claim.Turn{
				Handler: j.reader.ID, Step: j.entry.Try.Step,
				Ran: j.ran, Through: j.record.Done && !j.record.Failed, Waits: j.record.Waiting,
			})
		}
	}
	return out
}

// event is what a handler of events is told.
func (p *pass) event(j *job) apiwatch.EventType {
	if j.cause != dsl.Event {
		return ""
	}
	return p.memory.event
}

// recollect gives a subject what its handler handled last, and how that differs from what is there now.
func (p *pass) recollect(j *job, of *dsl.Subject) {
	old := p.book.Old(j.reader)
	if old == nil {
		return
	}
	of.Old = runtime.DeepCopyJSON(old)
	changes := cause.Diff(of.Old, runtime.DeepCopyJSON(p.sight.Kept(j.reader.View)))
	paths := j.reader.View.Fields
	if len(paths) == 0 {
		of.Diff = changes
	}
	for _, path := range paths {
		of.Diff = append(of.Diff, cause.Within(changes, path)...)
	}
}

// invoke runs one attempt of a handler: with its deadline, and a panic turned into an error. The
// handler's context is ended when it returns, so nothing that it left behind writes later.
func invoke(ctx context.Context, h *dsl.Handler, request *dsl.Request, bind func(context.Context)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if h.Timeout > 0 {
		var expire context.CancelFunc
		ctx, expire = context.WithTimeout(ctx, h.Timeout)
		defer expire()
	}
	bind(ctx)
	defer func() {
		if p := recover(); p != nil {
			request.Log.Error(fmt.Errorf("%w: %v", errPanic, p), "handler panicked", "stack", string(debug.Stack()))
			err = fmt.Errorf("%w: %v", errPanic, p)
		}
	}()
	err = h.Func(ctx, request)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil:
		return fmt.Errorf("%w (%s): %w", errTimeout, h.Timeout, err)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w (%s)", errTimeout, h.Timeout)
	}
	if _, waiting := waits(err); err != nil && !waiting {
		return err
	}
	if faults := wrongPatch(h, request.Patch); faults != nil {
		return dsl.Permanent(faults)
	}
	return err
}

// wrongPatch returns what is wrong with what a handler wants, for which it fails for good.
func wrongPatch(h *dsl.Handler, p *dsl.Patch) error {
	if h.Whole && !p.Empty() {
		return errors.New("it wants to change an object, but runs for the resource as a whole: others are changed with the client")
	}
	return p.Err()
}

// waits reports whether the handler waits for what others do, and how long at most.
func waits(err error) (most time.Duration, ok bool) {
	if err == nil || overran(err) || dsl.IsPermanent(err) {
		return 0, false
	}
	return dsl.IsWaiting(err)
}

// overran reports whether what the handler wanted is void: its time was over, or it broke off.
func overran(err error) bool { return errors.Is(err, errTimeout) || errors.Is(err, errPanic) }

// outcome names how an attempt ended.
func outcome(err error, failed bool) ops.Outcome {
	switch {
	case err == nil:
		return ops.Success
	case errors.Is(err, errPanic):
		return ops.Panic
	case failed:
		return ops.Failed
	case errors.Is(err, errTimeout):
		return ops.Timeout
	}
	if _, waiting := waits(err); waiting {
		return ops.Waiting
	}
	return ops.Retry
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"time"

	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/events"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/queue"
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
	j.saw = p.look.Digest(j.reader.View)
	s := fence.NewSpan(p.r.engine.held)
	request := p.handling(j, s)
	start := time.Now()
	leave := p.r.busy.Enter(p.key, j.reader.ID)
	err := attempt.Run(ctx, j.reader.Handler, request, s.Begin)
	leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if reporter, is := request.Events.(*events.Reporter); is {
		j.warned = reporter.Warned()
	}
	if !attempt.Void(err) {
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

// note records the outcome of an attempt, and says it where people look.
func (p *pass) note(j *job, err error, took time.Duration) {
	j.ran = true
	before, log := j.record, p.log().WithValues("handler", j.reader.ID, "cause", string(j.cause), "attempt", j.record.Attempts+1)
	most, waiting := attempt.Waits(err)
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
		Outcome: attempt.Outcome(err, j.record.Failed), Duration: took,
	})
	if wait := j.record.Waits(time.Now()); !j.record.Done {
		p.next = p.next.sooner(wait, queue.Due)
	}
}

// finish enters the outcome of a job into the book. Its handler has seen the object as it was before it
// ran, and what it changes itself is no news for it; for others that look there it is.
func (p *pass) finish(j *job) {
	j.left = p.look.Digest(j.reader.View)
	var kept map[string]any
	if j.reader.Old {
		kept = p.look.Kept(j.reader.View)
	}
	e := j.entry
	e.Try = j.record
	p.ledger.Put(j.reader, e.End(j.reader.View, j.left, kept))
	if j.record.Done && !j.record.Failed {
		p.ledger.Again(j.reader)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/events"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// attempt runs a job when it is due and notes its outcome. The error is that of a pass that must
// end, because the process or its leadership does.
func (p *pass) attempt(ctx context.Context, j *plan.Job) error {
	if wait := j.Record.Waits(p.now); wait > 0 {
		p.next = p.next.Sooner(wait, queue.Due)
		return nil
	}
	if p.blocked(j.Reader.Handler) {
		return nil
	}
	if err := p.ensureFinalizer(ctx); err != nil {
		return err
	}
	p.family.Claims.Run(j.Reader.ID, j.Record.Step)
	j.Saw = p.look.Digest(j.Reader.View)
	s := fence.NewSpan(p.r.engine.held)
	request := p.request(j, s)
	log := request.Log
	start := time.Now()
	leave := p.r.busy.Enter(p.key, j.Reader.ID)
	err := attempt.Run(ctx, j.Reader.Handler, request, s)
	leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if reporter, is := request.Events.(*events.Reporter); is {
		j.Warned = reporter.Warned()
	}
	if !attempt.Void(err) {
		j.Record.Step = request.Step
		if err := p.lay(ctx, j, request.Patch); err != nil {
			p.void(j)
			return err
		}
		if said := p.probe(ctx, j); said != nil {
			p.fault(j, said)
			return nil
		}
	}
	p.family.Claims.Ran(j.Reader.ID, err == nil)
	p.note(log, j, err, time.Since(start))
	p.finish(j)
	return nil
}

// ensureFinalizer adds the finalizer before the first handler of an object runs. When no handler is due, the
// finalizer goes along with the pass's write.
func (p *pass) ensureFinalizer(ctx context.Context) error {
	there := slices.Contains(p.family.Base().GetFinalizers(), p.r.engine.op.Finalizer())
	if there || p.resourceWide() || p.gone || p.deletion != "" || !p.wantsFinalizer() {
		return nil
	}
	marks := patch.Marks{Finalizer: p.r.engine.op.Finalizer(), Add: true}
	base, err := p.send(ctx, p.object, func(*unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return dsl.NewPatch(), marks })
	if err != nil {
		return err
	}
	p.family.Rebase(base)
	return nil
}

// lay lays what a handler wants on the object as those after it see it.
func (p *pass) lay(ctx context.Context, j *plan.Job, wants *dsl.Patch) error {
	j.Offers = len(wants.Offered) > 0
	wants, err := p.r.conditions.Offered(ctx, wants, p.patch.Conditions)
	if err != nil {
		return err
	}
	wants.Retired = slices.DeleteFunc(wants.Retired, p.saying().Keeps)
	j.Wants = wants
	p.show(p.with(wants, p.facts))
	return nil
}

// note records the outcome of an attempt, and says it where people look.
func (p *pass) note(log logr.Logger, j *plan.Job, err error, took time.Duration) {
	j.Ran = true
	before := j.Record
	most, waiting := attempt.Waits(err)
	switch {
	case err == nil:
		j.Record = j.Record.Succeed()
		if log.V(1).Enabled() {
			log.V(1).Info("handler succeeded", "took", took.String())
		}
		p.memory.Troubles.Mended(log, j.Reader.ID, "handler works again")
	case waiting:
		j.Record = j.Record.Wait(err, most, time.Now())
		log.V(1).Info("handler waits", "reason", err.Error(), "timeout", most.String())
	default:
		j.Record = j.Record.Fail(j.Reader.Handler, err, time.Now())
		p.complain(log, j, before, err)
	}
	p.r.refused(p.key, j.Reader.ID, err)
	p.r.engine.metrics.Handled(ops.HandlerRun{
		Resource: p.r.name, Handler: j.Reader.ID, Cause: j.Cause,
		Outcome: attempt.Outcome(err, j.Record.Failed), Duration: took,
	})
	if wait := j.Record.Waits(time.Now()); !j.Record.Done {
		p.next = p.next.Sooner(wait, queue.Due)
	}
}

// finish enters the outcome of a job into the book. Its handler has seen the object as it was before it
// ran, and what it changes itself is no news for it; for others that look there it is.
func (p *pass) finish(j *plan.Job) {
	j.Left = p.look.Digest(j.Reader.View)
	var kept map[string]any
	if j.Reader.Old {
		kept = p.look.Kept(j.Reader.View)
	}
	e := j.Entry
	e.Try = j.Record
	p.ledger.Put(j.Reader, e.End(j.Reader.View, j.Left, kept))
	if j.Record.Done && !j.Record.Failed {
		p.ledger.Again(j.Reader)
	}
}

// void takes back what a handler did, as far as the book knows.
func (p *pass) void(j *plan.Job) { p.ledger.Put(j.Reader, j.Void()) }

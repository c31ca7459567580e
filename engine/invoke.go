// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/events"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// attempt runs a job when it is due and notes its outcome. The error is that of a pass that must
// end, because the process or its leadership does.
func (p *run) attempt(ctx context.Context, j *pass.Job) error {
	if p.postponed(j) {
		return nil
	}
	if err := p.ensureFinalizer(ctx); err != nil {
		return err
	}
	if err := p.readWhole(ctx); err != nil {
		return err
	}
	p.family.Claims.Run(j.Reader.ID, j.Record.Past())
	j.Saw = p.Look.Digest(j.Reader.View)
	s := transport.NewSpan(p.r.engine.held)
	request := p.request(j, s)
	log := request.Log
	start := time.Now()
	j.Record = j.Record.Start(j.Reader.Handler, start)
	leave := p.r.busy.Enter(p.key, j.Reader.ID)
	parts := attempt.Subhandlers{SubhandlerSettings: &p.r.parts, Troubles: &p.memory.Troubles, Known: j.Record.Parts}
	code := p.r.machines.Code(j, p.memory, p.gone, p.fuller(ctx))
	err := attempt.Run(discreet(ctx, j.Reader), code, parts.Around(code.Func), request, j.Record.Ends(j.Reader.Handler), s)
	leave()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.Lost() || !p.r.engine.held(ctx) { // the handler may have failed for that alone
		return fmt.Errorf("running handler %s: %w", j.Reader.ID, transport.ErrNotLeading)
	}
	p.r.machines.Did(j, p.memory)
	if reporter, is := request.Events.(*events.Reporter); is {
		j.Warned = reporter.Warned()
	}
	if !attempt.Void(err) || parts.Sound || request.Patch.Finished {
		j.Failed, j.Again = parts.Failed, request.Again
		wrong, ends := p.lay(ctx, j, request.Patch)
		if ends != nil {
			p.void(j)
			return ends
		}
		if err = attempt.Laid(err, wrong); wrong == nil {
			j.Record.Step, j.Record.Parts = request.Step, parts.Known
		}
		if said := p.probe(ctx, j); said != nil {
			return p.fault(ctx, j, said)
		}
	}
	p.family.Claims.Ran(j.Reader.ID, err == nil)
	p.note(log, j, err, time.Since(start))
	p.finish(j)
	return nil
}

// postponed reports whether a job does not run in this pass: it is not due yet, or blocked, or its deadline has passed.
func (p *run) postponed(j *pass.Job) bool {
	if wait := j.Record.Waits(p.now); wait > 0 {
		p.next = p.next.Sooner(wait, queue.Due)
		return true
	}
	if p.blocked(j.Reader.Handler) {
		return true
	}
	late := j.Record.Overdue(j.Reader.Handler, time.Now())
	if late != nil {
		p.note(p.logOfJob(j), j, late, 0)
		p.finish(j)
	}
	return late != nil
}

// ensureFinalizer adds the finalizer before the first handler of an object runs. When no handler is due, the
// finalizer goes along with the pass's write.
func (p *run) ensureFinalizer(ctx context.Context) error {
	there := slices.Contains(p.family.Base().GetFinalizers(), p.r.rules.Finalizer)
	if there || p.resourceWide() || p.gone || p.deletion != "" || !p.wantsFinalizer() {
		return nil
	}
	marks := patch.Marks{Finalizer: p.r.rules.Finalizer, Earlier: p.r.rules.Earlier, Add: true}
	base, err := p.send(ctx, p.object, func(*unstructured.Unstructured) (*dsl.Patch, patch.Marks) { return dsl.NewPatch(), marks })
	if err != nil {
		return err
	}
	p.family.Rebase(base)
	return nil
}

// lay lays what a handler wants on the object as those after it see it. It returns what is wrong with that, and the error
// of a pass that must end.
func (p *run) lay(ctx context.Context, j *pass.Job, wants *dsl.Patch) (wrong, ends error) {
	j.Offers = len(wants.Offered) > 0
	set := p.explicit
	if j.Machine != nil {
		set = nil // of Ready, the last of several machines knows what all before it have come to
	}
	p.explicit = append(p.explicit, wants.Conditions...)
	wants, err := p.offered(ctx, wants, set)
	if err != nil {
		return nil, err
	}
	made := wants
	if len(wants.Transforms) > 0 {
		full, err := p.full(ctx)
		if err != nil {
			return nil, err
		}
		made, wrong = patch.ResolveMost(full, wants, p.r.own.Resource().Generation(p.object), p.now)
	}
	if j.Wants = wants; wrong != nil || made.Empty() {
		j.Wants = made // transformations that fail, or have nothing to do, do not run again
	}
	at, _ := p.With(made, p.r.own.Resource().Generation(p.object), p.now)
	p.show(at)
	return wrong, nil
}

// offered returns what a handler wants with the conditions that it offers, where the object has conditions and nobody has set
// these, and without the ends of conditions that others set.
func (p *run) offered(ctx context.Context, wants *dsl.Patch, set []metav1.Condition) (*dsl.Patch, error) {
	wants, err := p.r.conditions.Offered(ctx, wants, set)
	if err == nil {
		wants.Retired = slices.DeleteFunc(wants.Retired, p.saying().Keeps)
	}
	return wants, err
}

// note records the outcome of an attempt, and says it where people look.
func (p *run) note(log logr.Logger, j *pass.Job, err error, took time.Duration) {
	j.Ran = true
	before, now := j.Record, time.Now()
	most, waiting := attempt.Waits(err)
	j.Record = attempt.Note(j.Reader.Handler, before, err, now, p.r.engine.unreached)
	p.slow(log, j, now)
	switch {
	case err == nil:
		if log.V(1).Enabled() {
			log.V(1).Info("handler succeeded", "took", took.String())
		}
		p.memory.Troubles.Works(log, j.Reader.ID)
	case waiting:
		j.Logged = p.r.engine.said(err)
		log.V(1).Info("handler waits", "reason", err.Error(), "timeout", most.String())
		if j.Failed != nil {
			p.warn(j, j.Failed)
		}
	default:
		p.complain(log, j, before, err)
	}
	outcome := attempt.Outcome(err, j.Record.Done, j.Record.Failed)
	if j.Failed != nil {
		err = j.Failed // which may be for lack of a right
	}
	p.r.refused(p.key, j.Reader.ID, err)
	p.r.engine.metrics.Handled(ops.HandlerRun{
		Resource: p.r.name, Handler: j.Reader.ID, Cause: j.Cause,
		Outcome: outcome, Duration: took,
	})
	if wait := j.Record.Waits(time.Now()); !j.Record.Done {
		p.next = p.next.Sooner(wait, queue.Due)
	}
}

// finish enters the outcome of a job into the book. Its handler has seen the object as it was before it
// ran, and what it changes itself is no news for it; for others that look there it is.
func (p *run) finish(j *pass.Job) {
	j.Left = p.Look.Digest(j.Reader.View)
	var kept map[string]any
	if j.Reader.Old {
		kept = p.Look.Kept(j.Reader.View)
	}
	e := j.Entry
	e.Try = j.Record
	p.ledger.Put(j.Reader, e.End(j.Reader.View, j.Left, kept))
	if j.Record.Done && !j.Record.Failed {
		p.ledger.Again(j.Reader)
	}
}

// void takes back what a handler did, as far as the book knows.
func (p *run) void(j *pass.Job) {
	p.ledger.Put(j.Reader, j.Void())
	p.memory.Troubles.Void(j.Reader.ID)
}

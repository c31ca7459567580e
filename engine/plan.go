// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cause"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/progress"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// job is a handler with a cause in this pass.
type job struct {
	handler *dsl.Handler
	cause   dsl.Cause
	// lasting: the cause comes from what is stored, so its progress is stored too.
	lasting bool
	record  progress.Record
	ran     bool
	// wants is what the handler asked for in this pass.
	wants *dsl.Patch
}

// plan finds the handlers that have a cause and that see the object.
func (p *pass) plan(n news) {
	p.resync = !p.memory.resync.IsZero() && !p.now.Before(p.memory.resync)
	for _, h := range p.r.rules.handlers {
		p.arise(h, n)
		j := p.job(h)
		if j == nil || !p.matches(j) {
			continue
		}
		p.jobs = append(p.jobs, j)
	}
}

// arise notes what has come up for a handler since the last pass.
func (p *pass) arise(h *dsl.Handler, n news) {
	record := p.records[h.ID]
	c := p.facts.Arising(h, finished(record))
	if c == "" && p.pending[h.ID] == "" {
		c = p.facts.Appearing(h, finished(record))
	}
	triggered := false
	if c == "" && !p.facts.Deleting {
		switch {
		case n.child && h.On(dsl.Child):
			c, triggered = dsl.Child, true
		case p.resync && h.On(dsl.Resync):
			c, triggered = dsl.Resync, true
		}
	}
	if c == "" {
		return
	}
	if triggered && p.pending[h.ID] != "" {
		if c == dsl.Child {
			record.Due = time.Time{} // what it waits for may have come
			p.records[h.ID] = record
		}
		return
	}
	p.pending[h.ID] = c
	if record.Done {
		delete(p.records, h.ID)
	}
}

// job returns what the handler has to do, nil when nothing.
func (p *pass) job(h *dsl.Handler) *job {
	view := p.facts.Now[h.Field.String()]
	stored := p.state.Records[h.ID]
	if c := p.facts.Lasting(h, finished(stored)); c != "" {
		if c == dsl.Delete && (p.parted(stored, view) || p.released(h)) {
			return nil
		}
		return &job{handler: h, cause: c, lasting: true, record: stored.For(c, view)}
	}
	if c := p.pending[h.ID]; c != "" && !p.facts.Deleting {
		return &job{handler: h, cause: c, record: p.records[h.ID].For(c, view)}
	}
	return nil
}

// parted reports whether a delete handler is finished. One that failed for good is tried again
// when the object changes: that is how a person says that the reason is mended.
func (p *pass) parted(record progress.Record, view string) bool {
	return record.Cause == dsl.Delete && record.Done && (!record.Failed || record.View == view)
}

// released reports whether the object, which others still hold, was let go by this operator: a
// delete handler that holds its object has nothing to do where the finalizer is gone, or never was.
func (p *pass) released(h *dsl.Handler) bool {
	return !p.gone && !h.NoFinalizer && !p.finalizer()
}

// finished returns the view that the record's handler is done with, empty when it is not.
func finished(r progress.Record) string {
	if r.Done {
		return r.View
	}
	return ""
}

// matches applies the handler's filters. An object that does not match any more has nothing to do
// with a child's or a resync's news; new and changed ones are kept in mind, should it match later.
func (p *pass) matches(j *job) bool {
	h := j.handler
	ok := dsl.MatchAll(h.Labels, p.object.GetLabels()) && dsl.MatchAll(h.Annotations, p.object.GetAnnotations())
	if ok && h.When != nil {
		holds, err := ask(h.When, p.request(j, nil))
		if err != nil {
			p.log().Error(err, "filter failed; the handler does not see the object", "handler", h.ID)
		}
		ok = holds && err == nil
	}
	if !ok && (j.cause == dsl.Child || j.cause == dsl.Resync) {
		delete(p.pending, h.ID)
	}
	return ok
}

// wantsFinalizer reports whether some delete handler wants to see the object off.
func (p *pass) wantsFinalizer() bool {
	if !p.r.rules.finalizes {
		return false
	}
	for _, h := range p.r.rules.handlers {
		if h.On(dsl.Delete) && !h.NoFinalizer && p.matches(&job{handler: h, cause: dsl.Delete}) {
			return true
		}
	}
	return false
}

// attempt runs a job when it is due and notes its outcome. The error is that of a pass that must
// end, because the process or its leadership does.
func (p *pass) attempt(ctx context.Context, j *job) error {
	if wait := j.record.Waits(p.now); wait > 0 {
		p.next = p.next.sooner(wait, queue.Due)
		return nil
	}
	if failed, blocked := p.blocked(j.handler); blocked {
		if failed != "" {
			err := dsl.Permanent(fmt.Errorf("it comes after %s, which failed", failed))
			p.note(j, err, 0)
		}
		return nil
	}
	s := &span{held: p.r.engine.held}
	request := p.request(j, s)
	start := time.Now()
	end := p.r.runs.begin(p.key, j.handler.ID)
	err := invoke(ctx, j.handler, request, func(c context.Context) { s.ctx = c })
	end()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !overran(err) {
		j.wants = request.Patch
		p.patch.Join(j.wants)
	}
	p.note(j, err, time.Since(start))
	return nil
}

// blocked reports whether a handler that this one comes after is not through yet, and names one
// that failed for good.
func (p *pass) blocked(h *dsl.Handler) (failed string, blocked bool) {
	for _, id := range h.After {
		for _, other := range p.jobs {
			switch {
			case other.handler.ID != id || other.record.Done && !other.record.Failed:
			case other.record.Failed:
				return id, true
			default:
				blocked = true
			}
		}
	}
	return "", blocked
}

// note records the outcome of an attempt, and says it where people look.
func (p *pass) note(j *job, err error, took time.Duration) {
	j.ran = true
	log := p.log().WithValues("handler", j.handler.ID, "cause", string(j.cause), "attempt", j.record.Attempts+1)
	if err == nil {
		j.record = j.record.Succeed()
		log.V(1).Info("handler succeeded", "took", took.String())
	} else {
		j.record = j.record.Fail(j.handler, err, time.Now())
		p.complain(log, j, err)
	}
	p.r.engine.metrics.Handled(ops.HandlerRun{
		Resource: p.r.name, Handler: j.handler.ID, Cause: j.cause,
		Outcome: outcome(err, j.record.Failed), Duration: took,
	})
	if wait := j.record.Waits(time.Now()); !j.record.Done {
		p.next = p.next.sooner(wait, queue.Due)
	}
}

func (p *pass) complain(log logr.Logger, j *job, err error) {
	if !j.record.Failed {
		log.Info("handler will be tried again", "error", err.Error(), "again", time.Until(j.record.Due).Round(time.Millisecond).String())
		return
	}
	log.Error(err, "handler failed for good")
	note := "Handler %s failed for good after %d attempts: %s"
	if j.cause == dsl.Delete && !j.handler.Release {
		note = "Deletion is held: handler %s failed for good after %d attempts: %s"
	}
	p.r.engine.events.report(p.object, j.handler.ID, dsl.Warning, "HandlerFailed", fmt.Sprintf(note, j.handler.ID, j.record.Attempts, j.record.Message))
}

// request is what the handler gets.
func (p *pass) request(j *job, s *span) *dsl.Request {
	h := j.handler
	request := &dsl.Request{
		Object: p.object.DeepCopy(), Cause: j.cause, Attempt: j.record.Attempts + 1,
		Patch: dsl.NewPatch(),
		Log:   p.log().WithValues("handler", h.ID, "cause", string(j.cause), "attempt", j.record.Attempts+1),
	}
	if j.cause != dsl.Create && p.state.Old != nil {
		request.Old = runtime.DeepCopyJSON(p.state.Old)
		changes := cause.Diff(p.state.Old, p.comparable())
		request.Diff = cause.Within(changes, h.Field)
		if len(h.Field) > 0 {
			request.Old = cause.Project(request.Old, []dsl.Path{h.Field})
		}
	}
	if s != nil {
		request.Children = &children{pass: p, span: s}
		request.Client = &client{engine: p.r.engine, span: s, wrote: p.wroteOther, deleted: p.deletedOther}
		request.Events = &reporter{engine: p.r.engine, object: p.object, handler: h.ID, span: s}
	}
	return request
}

// comparable is the essence as far as the base was kept.
func (p *pass) comparable() map[string]any {
	if p.r.rules.fields == nil {
		return p.essence
	}
	return cause.Project(p.essence, p.r.rules.fields)
}

func (p *pass) log() logr.Logger {
	return p.r.log.WithValues("namespace", p.key.Namespace, "name", p.key.Name)
}

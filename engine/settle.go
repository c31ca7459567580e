// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/queue"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// verdict is what a pass has come to, beside what its handlers want.
type verdict struct {
	// marks are what is written for the engine itself.
	marks patch.Marks
	pass.Finalization
	// behind: a handler has not seen what others have done to the object after it.
	behind bool
	// rerun are handlers that the next pass runs for what others have written to children in this one.
	rerun []string
}

// settle turns outcomes into what is to be stored.
func (p *run) settle() verdict {
	failed := slices.ContainsFunc(p.r.rules.Readers, p.holdsUp)
	if p.family.Applied() {
		p.filters.Reset()
	}
	living := p.deletion == ""
	out := verdict{Finalization: pass.Settle(pass.Ending{
		Gone: p.gone, Deleted: !living, Finalizer: p.finalizer(), Wanted: living && p.wantsFinalizer(),
		Open: p.jobs.Open(p.gone) || p.daemonsEnd(), Failed: failed, Unsure: p.filters.Unsure() || !p.searched,
	})}
	if living {
		out.rerun = p.jobs.Rerun(p.r.rules.Readers, p.family.Writes())
		if out.behind = p.behind(); out.behind || len(out.rerun) > 0 {
			p.next = p.next.AtOnce()
		}
		out.rerun = append(out.rerun, p.askAgain()...)
	} else {
		p.memory.Finalized = out.Finalized
	}
	out.marks = patch.Marks{Finalizer: p.r.rules.Finalizer, Earlier: p.r.rules.Earlier, Add: out.Add, Remove: out.Remove}
	if living || !p.gone && !out.Remove {
		retries, again := p.jobs.Retries()
		stored := book.Draft{Look: p.Look, Wanted: p.Patch, Finalizer: out.Add, Retries: retries, Again: again}
		if wait := p.ledger.Save(stored, &out.marks); wait > 0 {
			p.next = p.next.Sooner(wait, queue.Due)
		}
	}
	for _, handler := range p.memory.Filters.Mended() {
		p.log().Info("filter can be asked again", "handler", handler)
		p.memory.Troubles.Over(filterOf(handler))
	}
	if !p.gone && p.r.spec.Cache != dsl.CacheMetadata { // else it is not known what other conditions there are
		p.saying().Failing(p.r.engine.op.Name, &out.marks)
	}
	out.marks.Ready = p.readiness()
	return out
}

// sweep takes away children that no handler has any more, once all handlers are through.
func (p *run) sweep(ctx context.Context, news bool) error {
	failed := func(r book.Reader) bool { return p.jobs.Record(r, p.ledger.Entry(r)).Failed }
	if p.searched = true; p.deletion != "" {
		return p.endChildren(ctx)
	}
	if !p.jobs.Through() || slices.ContainsFunc(p.r.rules.Readers, failed) {
		p.memory.Sweep.Missed(news)
		return nil
	}
	unsure := func(handler int) bool {
		r := p.r.rules.Readers[handler]
		return p.sees(r, pass.AskFor(r.Handler)).Err != nil
	}
	again, err := p.family.Sweep(discreet(ctx, p.r.rules.Readers...), transport.NewSpan(p.r.engine.held), news, p.Current, unsure)
	if again > 0 {
		p.next = p.next.Sooner(again, queue.Due)
	}
	return err
}

// endChildren deletes or releases children before the object goes, once all delete handlers are through. It does so also for an
// object that another finalizer holds and that lacks the operator's: somebody has overwritten it, or taken it off. No delete
// handler runs for such an object any more, so one that has failed for good keeps nothing.
func (p *run) endChildren(ctx context.Context) error {
	lacks := !p.gone && !p.finalizer()
	over := p.memory.Finalized && (p.gone || lacks)
	if over || p.jobs.Open(p.gone) || p.daemonsEnd() || p.filters.Unsure() || !lacks && slices.ContainsFunc(p.r.rules.Readers, p.holdsUp) {
		return nil
	}
	alone := p.finalizer() && (!p.r.rules.Finalizes || !p.handlersHold())
	again, open, err := p.family.EndChildren(discreet(ctx, p.r.rules.Readers...), transport.NewSpan(p.r.engine.held), alone)
	if p.searched = !open; again > 0 {
		p.next = p.next.Sooner(again, queue.Due)
	}
	if err != nil {
		p.held(err)
		return fmt.Errorf("taking away children of an object that is being deleted: %w", err)
	}
	return nil
}

// held says on the object that its deletion waits, because children could not be seen or taken away for the second time.
func (p *run) held(err error) {
	if !p.gone && p.memory.Troubles.Has(pass.Itself) && !p.r.engine.outages.Covers(err) && !feed.Unanswered(err) && !apierrors.IsConflict(err) {
		p.r.engine.events.Warn(p.object, "children", "DeletionHeld", "Deletion is held: "+err.Error())
	}
}

// holdsUp reports whether a handler that has failed for good keeps a deletion from going on.
func (p *run) holdsUp(r book.Reader) bool {
	e := p.ledger.Entry(r)
	return r.On(dsl.Delete) && !r.Release && e.DeleteDone(p.deletion) && e.Try.Failed && p.sees(r, dsl.Delete).Keeps()
}

// behind reports whether a handler has not seen what those after it have done to the object.
func (p *run) behind() bool {
	return len(p.jobs.Asking()) > 0 && slices.ContainsFunc(p.jobs, func(j *pass.Job) bool {
		return j.Ran && j.Left != p.Look.Digest(j.Reader.View) &&
			p.ledger.Entry(j.Reader).Due(j.Reader.Handler, p.ledger.Facts(j.Reader, p.Look)) != ""
	})
}

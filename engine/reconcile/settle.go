// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// change is what a reconcile has come to, beside what its handlers want.
type change struct {
	// marks are what is written for the engine itself.
	marks patch.Marks
	Finalization
	// behind: a handler has not seen what others have done to the object after it.
	behind bool
	// rerun are handlers that the next reconcile runs for what others have written to children in this one.
	rerun []string
	// vanished: the object was gone when it was to be written.
	vanished bool
}

// prune takes away children that no handler has any more, once all handlers are through.
func (p *run) prune(ctx context.Context, st State) (State, error) {
	if st.Searched = true; p.Deletion != "" {
		return p.endChildren(ctx, st)
	}
	ctx = discreet(ctx, p.Rules.Readers...)
	// This does not wait for the handlers: one may fail because of a field that is to be given back here.
	if again := p.family.Reclaim(ctx, transport.NewSpan(p.Host.Held), st.Current); again > 0 {
		st.Due = st.Due.Sooner(again, queue.Due)
	}
	failed := func(r progress.Handler) bool { return st.Jobs.Record(r, p.ledger.Entry(r)).Failed }
	if !st.through() || slices.ContainsFunc(p.Rules.Readers, failed) {
		p.memory.Sweep.Missed(p.Changes.Child)
		return st, nil
	}
	if !p.family.Sweeps(p.Changes.Child, st.Current) {
		return st, nil
	}
	seen := st.Draft
	unsure := func(handler int) bool {
		r := p.Rules.Readers[handler]
		return p.askFilters(seen, r, askFor(r.Handler)).Err != nil
	}
	again, err := p.family.Sweep(ctx, transport.NewSpan(p.Host.Held), p.Changes.Child, st.Current, &snapshot{p, st, nil}, unsure)
	if again > 0 {
		st.Due = st.Due.Sooner(again, queue.Due)
	}
	return st, err
}

// endChildren deletes or releases children before the object goes, once all delete handlers are through. It does so also for an
// object that another finalizer holds and that lacks the operator's: somebody has overwritten it, or taken it off. No delete
// handler runs for such an object any more, so one that has failed for good keeps nothing.
func (p *run) endChildren(ctx context.Context, st State) (State, error) {
	lacks := !p.Gone && !p.finalizer()
	over := p.memory.Finalized && (p.Gone || lacks)
	holdsUp := func(r progress.Handler) bool { return p.holdsUp(st.Draft, r) }
	if over || st.Jobs.Open(p.Gone) || p.daemonsEnd() || p.filters.Unsure() || !lacks && slices.ContainsFunc(p.Rules.Readers, holdsUp) {
		return st, nil
	}
	alone := p.finalizer() && (!p.Rules.Finalizes || !p.handlersHold(st.Draft))
	again, open, err := p.family.EndChildren(discreet(ctx, p.Rules.Readers...), transport.NewSpan(p.Host.Held), alone)
	if st.Searched = !open; again > 0 {
		st.Due = st.Due.Sooner(again, queue.Due)
	}
	if err == nil {
		return st, nil
	}
	if note := p.heldNote(err); note != nil {
		st = st.noted(*note)
	}
	return st, fmt.Errorf("taking away children of an object that is being deleted: %w", err)
}

// heldNote says on the object that its deletion waits, because children could not be seen or taken away for the second time. It is
// nil where that is not to be said.
func (p *run) heldNote(err error) *Note {
	if err == nil || p.Gone || !p.memory.Troubles.Has(Itself) || p.Host.Covered(err) || source.Unanswered(err) || apierrors.IsConflict(err) {
		return nil
	}
	return &Note{Action: "children", Reason: "DeletionHeld", Message: "Deletion is held: " + err.Error()}
}

// holdsUp reports whether a handler that has failed for good keeps a deletion from going on.
func (p *run) holdsUp(d Draft, r progress.Handler) bool {
	if !r.On(dsl.Delete) || r.Release {
		return false
	}
	e := p.ledger.Entry(r)
	return e.DeleteDone(p.Deletion) && e.Try.Failed && !e.Try.Ended && p.askFilters(d, r, dsl.Delete).Keeps()
}

// settle turns outcomes into what is to be stored.
func (p *run) settle(st State) (State, change) {
	failed := slices.ContainsFunc(p.Rules.Readers, func(r progress.Handler) bool { return p.holdsUp(st.Draft, r) })
	if p.family.Applied() {
		p.filters.Reset()
	}
	living := p.Deletion == ""
	out := change{Finalization: Settle(Ending{
		Gone: p.Gone, Deleted: !living, Finalizer: p.finalizer(), Wanted: living && p.wantsFinalizer(st.Draft),
		Open: st.Jobs.Open(p.Gone) || p.daemonsEnd(), Failed: failed, Unsure: p.filters.Unsure() || !st.Searched,
	})}
	if living {
		st, out = p.settleLiving(st, out)
	} else {
		p.memory.Finalized = out.Finalized
	}
	out.marks = patch.Marks{Finalizer: p.Rules.Finalizer, Earlier: p.Rules.Earlier, Add: out.Add, Remove: out.Remove}
	if key := p.Rules.Retry; st.Retried {
		out.marks.Spent = map[string]string{key: p.Object.GetAnnotations()[key]}
	}
	if p.stores(out) {
		retries, again := st.Jobs.Retries()
		stored := progress.Draft{Look: st.Look, Wanted: st.Patch, Finalizer: out.Add, Retries: retries, Again: again}
		if wait := p.ledger.Save(stored, &out.marks); wait > 0 {
			st.Due = st.Due.Sooner(wait, queue.Due)
		}
	}
	for _, q := range p.memory.Filters.Unasked() {
		p.askAgain(st.Draft, q)
	}
	for _, handler := range p.memory.Filters.Mended() {
		st = st.noted(Note{Kind: FilterMended, Handler: handler})
	}
	if !p.Gone && p.Rules.Spec.Cache != dsl.CacheMetadata { // else it is not known what other conditions there are
		p.conditions(st).Own(&out.marks)
	}
	if p.keepsReady() {
		st, out.marks.Ready = p.readiness(st)
	}
	out.marks.Observed = p.observedGeneration(st)
	out.marks.ObservedAlone = st.endedWith(out)
	return st, out
}

// stores reports whether the progress may be worth storing. It is not where the object goes: handlers of objects that live run for it no
// more, so of one that a handler has just deleted nothing is to be known.
func (p *run) stores(v change) bool {
	if p.Deletion == "" {
		return !p.deleted.Load()
	}
	return !p.Gone && !v.Remove
}

// settleLiving finds the handlers that the next reconcile runs for what others have done in this one.
func (p *run) settleLiving(st State, out change) (State, change) {
	out.rerun = st.Jobs.Rerun(p.Rules.Readers, p.family.Writes())
	if out.behind = p.behind(st); out.behind || len(out.rerun) > 0 {
		st.Due = st.Due.AtOnce()
	}
	leaving := p.family.Leaving() // handlers that gave up a child which stays for now run again
	if undecided := p.family.Undecided((&snapshot{p, st, nil}).Undecided); len(leaving) > 0 && !undecided {
		st.Due = st.Due.AtOnce() // no other handler may want such a child any more
	}
	out.rerun = append(out.rerun, leaving...)
	return st, out
}

// behind reports whether a handler has not seen what those after it have done to the object.
func (p *run) behind(st State) bool {
	return len(st.Jobs.Asking()) > 0 && slices.ContainsFunc(st.Jobs, func(j *Attempt) bool {
		return j.Ran && j.Left != st.Look.Digest(j.Reader.View) &&
			p.ledger.Entry(j.Reader).Due(j.Reader.Handler, p.ledger.Facts(j.Reader, st.Look)) != ""
	})
}

// Ending is what is known at the end of a reconcile of the handlers that are to see its object off.
type Ending struct {
	// Gone: the object is gone from sight. Deleted: it is gone, or is being deleted.
	Gone, Deleted bool
	// Finalizer: the object has the operator's. Wanted: a delete handler holds it.
	Finalizer, Wanted bool
	// Open: some are not finished. Failed: one has failed for good, and keeps a deletion from going on. Unsure:
	// a filter failed, so it is not known whether its handler sees the object.
	Open, Failed, Unsure bool
}

// Finalization is what becomes of an object and its finalizer.
type Finalization struct {
	// Add and Remove say what to do with the finalizer. Of an object that is gone from sight alone, removing takes off
	// all that the operator has left on it.
	Add, Remove bool
	// Finalized: delete handlers are done. Held: one keeps the object from being deleted, and will not let it go by itself.
	Finalized, Held bool
}

// Settle decides what becomes of the object.
func Settle(e Ending) Finalization {
	switch {
	case e.Gone:
		finalized := !e.Open && !e.Unsure
		return Finalization{Finalized: finalized, Remove: finalized && !e.Failed}
	case e.Deleted:
		held := e.Unsure || e.Failed
		return Finalization{Finalized: !e.Open && !held, Remove: !e.Open && !held, Held: held}
	}
	return Finalization{Add: e.Wanted && !e.Finalizer, Remove: !e.Wanted && e.Finalizer}
}

// Rerun names the handlers that the next reconcile runs for children that others have written in this one, after them.
func (js Attempts) Rerun(readers []progress.Handler, writes []children.Write) (out []string) {
	for _, w := range writes {
		for _, r := range readers {
			since := js[min(w.Turn, len(js)):].Of(r)
			if w.Child && r.ID != w.Handler && r.On(dsl.Child) && (since == nil || !since.Ran) && !slices.Contains(out, r.ID) {
				out = append(out, r.ID)
			}
		}
	}
	return out
}

// Retries reports whether some job is to be tried again for what is stored. Latest is when the latest of those is that
// were tried in this reconcile.
func (js Attempts) Retries() (some bool, latest time.Time) {
	for _, j := range js {
		if !j.retries() {
			continue
		}
		some = true
		if j.Ran && (!j.Record.Waiting || j.Record.Parts != nil) && j.Record.Due.After(latest) {
			latest = j.Record.Due
		}
	}
	return some, latest
}

// retries reports whether the job is to be tried again for what is stored.
func (j *Attempt) retries() bool {
	if j.Record.Done || !j.Ran && j.Record.Attempts == 0 && !j.Record.Waiting {
		return false
	}
	return j.Cause == dsl.Delete || j.Reader.Stores() && j.Cause.Lasting()
}

// Open reports whether some handler that is to see the object off is not finished, and may run still. Gone: the object is gone
// from sight.
func (js Attempts) Open(gone bool) bool {
	return slices.ContainsFunc(js, func(j *Attempt) bool {
		return (j.Cause == dsl.Delete || gone && j.Cause == dsl.Event) && !j.Record.Done && !j.Barred
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// change is what the engine itself writes at the end of a reconcile, beside the handlers' patches.
type change struct {
	// marks are the engine's own fields: finalizer, annotations and conditions.
	marks patch.Marks
	Finalization
	// behind: a later handler has changed what an earlier one looks at.
	behind bool
	// rerun are handlers that run in the next reconcile, because others have written children in this one.
	rerun []string
	// vanished: the write found that the object was gone.
	vanished bool
}

// settle computes the engine's own changes from the outcomes: stored progress, finalizer and conditions.
func (p *run) settle(st State) (State, change) {
	var out change
	if p.Deletion == "" {
		st, out = p.settleLiving(st)
	} else {
		out = p.settleDeletion(st)
	}
	if key := p.Rules.Retry; st.Retried {
		out.marks.RemoveAnnotations = map[string]string{key: p.Object.GetAnnotations()[key]}
	}
	if p.stores(out) {
		retries, again := st.Attempts.Retries()
		stored := progress.Draft{Snapshot: st.Look, Wanted: st.Patch, Finalizer: out.Add, Retries: retries, Again: again}
		if wait := p.progress.Save(stored, &out.marks); wait > 0 {
			st.Due = st.Due.Sooner(wait, queue.Due)
		}
	}
	for _, q := range p.memory.Filters.NotEvaluated() {
		p.askAgain(st.Draft, q)
	}
	st = p.noteRecovered(st)
	if p.Rules.Spec.Cache != dsl.CacheMetadata { // otherwise other conditions are unknown
		p.ownConditions(st, &out.marks)
	}
	st = p.settleLimits(st, p.wantsNoDeletion(st, out), &out.marks)
	if p.keepsReady() {
		st, out.marks.Ready = p.nextReady(st)
	}
	out.marks.Observed = p.observedGeneration(st)
	out.marks.ObservedAlone = st.endedWith(out)
	return st, out
}

// wantsNoDeletion reports whether the object and its children are as they shall be, so that no deletion is wanted.
func (p *run) wantsNoDeletion(st State, v change) bool {
	if p.Deletion != "" {
		return v.Finalized
	}
	return st.through() && p.memory.Prune.Done(false)
}

// noteRecovered adds a note for each handler whose filters work again.
func (p *run) noteRecovered(st State) State {
	for _, handler := range p.memory.Filters.Recovered() {
		st = st.noted(Note{Kind: FilterRecovered, Handler: handler})
	}
	return st
}

// stores reports whether the progress is worth storing. It is not if the object is about to go, because its finalizer is
// removed or a handler has deleted it: a new object of its name does not use this progress.
func (p *run) stores(v change) bool {
	if p.Deletion == "" {
		return !p.deleted.Load()
	}
	return !v.Remove
}

// settleDeletion decides about the finalizer of an object that is being deleted.
func (p *run) settleDeletion(st State) change {
	out := p.finalization(Ending{
		Deleted: true, Finalizer: p.hasFinalizer(), Open: st.Attempts.Open(false) || p.daemonsEnd(), Failed: p.isHeldUp(st), Unsure: p.isUnsure(st),
	})
	p.memory.Finalized = out.Finalized
	p.dropAnswers()
	return out
}

// dropAnswers drops the answers of filters if handlers have applied children, because filters may read children.
func (p *run) dropAnswers() {
	if p.family.Applied() {
		p.filters.Reset()
	}
}

// isHeldUp reports whether a handler that has failed for good holds the deletion.
func (p *run) isHeldUp(st State) bool {
	return slices.ContainsFunc(p.Rules.Readers, func(r progress.Handler) bool { return p.holdsUp(st.Draft, r) })
}

// isUnsure reports whether it is unknown which handlers or children the deletion waits for.
func (p *run) isUnsure(st State) bool { return p.filters.Unsure() || !st.Searched }

// finalization returns the change of an object's finalizer.
func (p *run) finalization(e Ending) change {
	out := change{Finalization: Settle(e)}
	out.marks = patch.Marks{Finalizer: p.Rules.Finalizer, Earlier: p.Rules.Earlier, Add: out.Add, Remove: out.Remove}
	return out
}

// settleLiving decides about the finalizer of an object that is not being deleted. It also finds the handlers to run in
// the next reconcile for changes in this one.
func (p *run) settleLiving(st State) (State, change) {
	p.dropAnswers()
	out := p.finalization(Ending{Finalizer: p.hasFinalizer(), Wanted: p.wantsFinalizer(st.Draft)})
	out.rerun = st.Attempts.Rerun(p.Rules.Readers, p.family.Writes())
	if out.behind = p.behind(st); out.behind || len(out.rerun) > 0 {
		st.Due = st.Due.AtOnce()
	}
	leaving := p.family.HandlersToRunAgain() // handlers that dropped a child run again while another handler may still want it
	if undecided := p.family.Undecided(&snapshot{p, st, nil}); len(leaving) > 0 && !undecided {
		st.Due = st.Due.AtOnce() // show whether another handler still wants the child
	}
	out.rerun = append(out.rerun, leaving...)
	return st, out
}

// behind reports whether an earlier handler has not seen the changes that later ones made to the object.
func (p *run) behind(st State) bool {
	return len(st.Attempts.Asking()) > 0 && slices.ContainsFunc(st.Attempts, func(j *Attempt) bool {
		return j.Ran && j.Left != st.Look.Digest(j.Reader.View) &&
			p.progress.Entry(j.Reader).Due(j.Reader.Handler, p.progress.Facts(j.Reader, st.Look)) != ""
	})
}

// Ending has the facts at the end of a reconcile that decide about the finalizer.
type Ending struct {
	// Gone: the cache does not show the object. Deleted: it is gone, or is being deleted.
	Gone, Deleted bool
	// Finalizer: the object has the operator's finalizer. Wanted: a handler, a daemon or a child needs it.
	Finalizer, Wanted bool
	// Open: a handler is unfinished. Failed: a handler has failed for good, and holds the deletion. Unsure: a filter
	// failed, or children could not be read, so it is unknown what the deletion waits for.
	Open, Failed, Unsure bool
}

// Finalization is what happens to an object's finalizer.
type Finalization struct {
	// Add and Remove are the change of the finalizer. For an object that only left the selector, Remove takes all marks
	// of the operator off.
	Add, Remove bool
	// Finalized: delete handlers are done. Held: a handler holds the deletion until somebody acts.
	Finalized, Held bool
}

// Settle decides what happens to the finalizer.
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

// Rerun returns the handlers that the next reconcile runs for children: others have written them in this one, after the
// handlers ran.
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

// Retries reports whether an attempt has a retry for a stored cause. Latest is the latest due time of the retries whose
// attempts ran in this reconcile.
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

// retries reports whether the attempt has a retry for a stored cause.
func (j *Attempt) retries() bool {
	if j.Record.Done || !j.Ran && j.Record.Attempts == 0 && !j.Record.Waiting {
		return false
	}
	return j.Cause == dsl.Delete || j.Reader.Stores() && j.Cause.Lasting()
}

// Open reports whether a delete handler is unfinished and may still run. Gone: the object is gone, so handlers of events
// count too.
func (js Attempts) Open(gone bool) bool {
	return slices.ContainsFunc(js, func(j *Attempt) bool {
		return (j.Cause == dsl.Delete || gone && j.Cause == dsl.Event) && !j.Record.Done && !j.NeverRuns
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/family"
	"github.com/handwerk-dev/handwerk/engine/ledger"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// verdict is what a pass has come to, beside what its handlers want.
type verdict struct {
	// marks are what is written for the engine itself.
	marks patch.Marks
	finalization
	// behind: a handler has not seen what others have done to the object after it.
	behind bool
	// stirred are handlers that the next pass runs for what others have written to children in this one.
	stirred []string
}

// finalization is what becomes of an object and its finalizer.
type finalization struct {
	// add and remove say what to do with the finalizer. Of an object that is gone from sight alone, removing takes off
	// all that the operator has left on it.
	add, remove bool
	// parted: delete handlers are done. Held: one keeps the object from being deleted, and will not let it go by itself.
	parted, held bool
}

// ending is what is known at the end of a pass of the handlers that are to see its object off.
type ending struct {
	gone, deleted bool
	// finalizer: the object has the operator's. Wanted: a delete handler holds it.
	finalizer, wanted bool
	// open: some are not finished. Failed: one has failed for good, and keeps a deletion from going on. Unsure:
	// whether one sees the object cannot be told.
	open, failed, unsure bool
}

// settle decides what becomes of the object.
func settle(e ending) finalization {
	switch {
	case e.gone:
		parted := !e.open && !e.unsure
		return finalization{parted: parted, remove: parted && !e.failed}
	case e.deleted:
		held := e.unsure || e.failed
		return finalization{parted: !e.open && !held, remove: !e.open && !held, held: held}
	}
	return finalization{add: e.wanted && !e.finalizer, remove: !e.wanted && e.finalizer}
}

// settle turns outcomes into what is to be stored.
func (p *pass) settle() verdict {
	failed := slices.ContainsFunc(p.r.rules.readers, p.holdsUp)
	if p.family.Applied() {
		p.filters.Reset()
	}
	living := p.deletion == ""
	out := verdict{finalization: settle(ending{
		gone: p.gone, deleted: !living, finalizer: p.finalizer(), wanted: living && p.wantsFinalizer(),
		open: opens(p.jobs, p.gone), failed: failed, unsure: p.filters.Unsure(),
	})}
	if living {
		out.stirred = stirred(p.r.rules.readers, p.jobs, p.family.Writes())
		if out.behind = p.behind(); out.behind || len(out.stirred) > 0 {
			p.next = p.next.atOnce()
		}
	} else {
		p.memory.parted = out.parted
	}
	out.marks = patch.Marks{Finalizer: p.r.engine.op.Finalizer(), Add: out.add, Remove: out.remove}
	if living || !p.gone && !out.remove {
		retries, again := retries(p.jobs)
		draft := ledger.Draft{Look: p.look, Wanted: p.patch, Finalizer: out.add, Retries: retries, Again: again}
		if wait := p.ledger.Save(draft, &out.marks); wait > 0 {
			p.next = p.next.sooner(wait, queue.Due)
		}
	}
	p.sayFailing(&out.marks)
	return out
}

// opens reports whether some handler that is to see the object off is not finished.
func opens(jobs []*job, gone bool) bool {
	return slices.ContainsFunc(jobs, func(j *job) bool {
		return (j.cause == dsl.Delete || gone && j.cause == dsl.Event) && !j.record.Done
	})
}

// retries reports whether some job is to be tried again for what is stored. Latest is when the latest of those is that
// were tried in this pass.
func retries(jobs []*job) (some bool, latest time.Time) {
	for _, j := range jobs {
		if !j.retries() {
			continue
		}
		some = true
		if j.ran && !j.record.Waiting && j.record.Due.After(latest) {
			latest = j.record.Due
		}
	}
	return some, latest
}

// retries reports whether the job is to be tried again for what is stored.
func (j *job) retries() bool {
	if j.record.Done || !j.ran && j.record.Attempts == 0 && !j.record.Waiting {
		return false
	}
	return j.cause == dsl.Delete || book.Stores(j.reader.Handler) && book.Lasting(j.cause)
}

// holdsUp reports whether a handler that has failed for good keeps a deletion from going on.
func (p *pass) holdsUp(r book.Reader) bool {
	e := p.ledger.Entry(r)
	return r.On(dsl.Delete) && !r.Release && e.Parted(p.deletion) && e.Try.Failed && p.sees(r, dsl.Delete).Keeps()
}

// stirred names the handlers that the next pass runs for children that others have written in this one, after them.
func stirred(readers []book.Reader, jobs []*job, writes []family.Write) (out []string) {
	for _, w := range writes {
		for _, r := range readers {
			since := slices.ContainsFunc(jobs[min(w.Turn, len(jobs)):], func(j *job) bool { return j.reader.Handler == r.Handler && j.ran })
			if w.Child && r.ID != w.Handler && r.On(dsl.Child) && !since && !slices.Contains(out, r.ID) {
				out = append(out, r.ID)
			}
		}
	}
	return out
}

// behind reports whether a handler has not seen what those after it have done to the object.
func (p *pass) behind() bool {
	if !slices.ContainsFunc(p.jobs, (*job).asks) {
		return false
	}
	return slices.ContainsFunc(p.jobs, func(j *job) bool {
		return j.ran && j.left != p.look.Digest(j.reader.View) &&
			p.ledger.Entry(j.reader).Due(j.reader.Handler, p.ledger.Facts(j.reader, p.look)) != ""
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/ledger"
	"github.com/handwerk-dev/handwerk/engine/patch"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// verdict is what a pass has come to, beside what its handlers want.
type verdict struct {
	// marks are what is written for the engine itself.
	marks patch.Marks
	plan.Finalization
	// behind: a handler has not seen what others have done to the object after it.
	behind bool
	// stirred are handlers that the next pass runs for what others have written to children in this one.
	stirred []string
}

// settle turns outcomes into what is to be stored.
func (p *pass) settle() verdict {
	failed := slices.ContainsFunc(p.r.rules.readers, p.holdsUp)
	if p.family.Applied() {
		p.filters.Reset()
	}
	living := p.deletion == ""
	out := verdict{Finalization: plan.Settle(plan.Ending{
		Gone: p.gone, Deleted: !living, Finalizer: p.finalizer(), Wanted: living && p.wantsFinalizer(),
		Open: p.jobs.Open(p.gone), Failed: failed, Unsure: p.filters.Unsure(),
	})}
	if living {
		out.stirred = p.jobs.Stirred(p.r.rules.readers, p.family.Writes())
		if out.behind = p.behind(); out.behind || len(out.stirred) > 0 {
			p.next = p.next.atOnce()
		}
	} else {
		p.memory.parted = out.Parted
	}
	out.marks = patch.Marks{Finalizer: p.r.engine.op.Finalizer(), Add: out.Add, Remove: out.Remove}
	if living || !p.gone && !out.Remove {
		retries, again := p.jobs.Retries()
		draft := ledger.Draft{Look: p.look, Wanted: p.patch, Finalizer: out.Add, Retries: retries, Again: again}
		if wait := p.ledger.Save(draft, &out.marks); wait > 0 {
			p.next = p.next.sooner(wait, queue.Due)
		}
	}
	p.sayFailing(&out.marks)
	return out
}

// holdsUp reports whether a handler that has failed for good keeps a deletion from going on.
func (p *pass) holdsUp(r book.Reader) bool {
	e := p.ledger.Entry(r)
	return r.On(dsl.Delete) && !r.Release && e.Parted(p.deletion) && e.Try.Failed && p.sees(r, dsl.Delete).Keeps()
}

// behind reports whether a handler has not seen what those after it have done to the object.
func (p *pass) behind() bool {
	return len(p.jobs.Asking()) > 0 && slices.ContainsFunc(p.jobs, func(j *plan.Job) bool {
		return j.Ran && j.Left != p.look.Digest(j.Reader.View) &&
			p.ledger.Entry(j.Reader).Due(j.Reader.Handler, p.ledger.Facts(j.Reader, p.look)) != ""
	})
}

// remember keeps what the pass worked out, after its write.
func (p *pass) remember(n changes, s verdict) {
	m := p.memory
	p.ledger.Keep(s.marks)
	m.stirred = s.stirred
	p.stands(s.Held)
	p.family.Close(p.jobs.Through())
	if n.resync || !m.seen {
		m.resync = p.r.nextResync(p.now, !m.seen)
	}
	m.seen = true
	if p.relatedReaderWrote() {
		p.related.Foresee(func() *unstructured.Unstructured { return draftOf(p.object).with(p.patch, p.facts).current })
	}
	m.related = p.related.State()
	p.rescheduleTimers(n.ticks)
	if !m.resync.IsZero() {
		p.next = p.next.sooner(time.Until(m.resync), queue.Resync)
	}
	p.brake(s.behind)
}

// relatedReaderWrote reports whether the only handler that runs for related objects is the only one that has changed
// the object. What others have changed is news to it.
func (p *pass) relatedReaderWrote() bool {
	asking := p.jobs.Asking()
	return len(asking) == 1 && slices.Equal([]*dsl.Handler{asking[0].Reader.Handler}, p.r.rules.relates)
}

// abandon remembers what handlers did in a pass that broke off, or whose write has failed, as far as
// nothing of it is lost: those that wanted nothing of the object need not run again.
func (p *pass) abandon() {
	for _, j := range p.jobs.Asking() {
		p.void(j)
	}
	p.ledger.Abandon()
	if m := p.memory; p.deletion == "" {
		late := p.jobs.Stirred(p.r.rules.readers, p.family.Writes())
		m.stirred = slices.Compact(slices.Sorted(slices.Values(append(m.stirred, late...))))
	}
}

// void takes back what a handler did, as far as the book knows.
func (p *pass) void(j *plan.Job) { p.ledger.Put(j.Reader, j.Void()) }

// brake lets an object rest whose passes write again and again, or whose handlers undo each other without
// a write. Behind: a handler has not seen what others have done after it.
func (p *pass) brake(behind bool) {
	m, content, last := p.memory, uint32(0), ""
	wrote := p.family.Writes()
	for _, w := range wrote {
		if w.Cache != nil {
			content += w.Content // in any order
			last = w.Cache.Name().String() + " " + w.Key.String()
		}
	}
	if last == "" && !behind {
		return
	}
	if !behind && p.jobs.Driven(wrote) || !m.breaker.Wrote(p.now, content) {
		p.r.box.Suspend(p.key, time.Time{})
		return
	}
	p.r.box.Suspend(p.key, m.breaker.Until())
	who, last := strings.Join(p.jobs.Changers(wrote), ", "), cmp.Or(last, p.r.name+" "+p.key.String())
	p.log().Info("object loops: its passes write again and again; it rests", dsl.LogWarning, true,
		"until", m.breaker.Until().Format(time.RFC3339), "handlers", who, "written", last)
	p.r.engine.events.Warn(p.object, "breaker", "Looping", fmt.Sprintf(
		"Handlers (%s) change this object or its children again and again without coming to rest, last %s; it is looked at again in a minute", who, last))
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/breaker"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// account is what a pass found out and did.
type account struct {
	changes
	jobs   pass.Jobs
	writes []children.Write
	verdict
}

// remember keeps what the pass worked out, after its write.
func (p *run) remember(a account) {
	m := p.memory
	p.ledger.Keep(a.marks)
	m.Troubles.Settle()
	for _, r := range p.r.rules.Readers {
		if m.Troubles.Any() && p.jobs.Of(r) == nil {
			m.Troubles.Rest(r.ID)
		}
	}
	if said := a.marks.Ready; said != nil {
		m.Ready = digestOf(conditionMap(said))
	}
	m.Rerun = a.rerun
	if !p.gone { // the key may be that of another object
		if m.Troubles.Any() {
			m.Troubles.Mended(p.log(), pass.Itself, "pass was finished again")
		}
		p.r.box.Finished(p.key, p.stand(a.jobs, p.r.rules.Readers, a.Held))
	}
	p.family.Close(a.jobs.Through())
	if a.resync || !m.Seen {
		m.Resync = pass.NextResync(p.r.spec.Resync, p.now, !m.Seen)
	}
	m.Seen = true
	// What the only handler that runs for related objects has changed is no news to it; what others have is.
	if a.jobs.AskedBy(p.r.rules.Relates) {
		p.related.Foresee(func() *unstructured.Unstructured {
			at, _ := pass.DraftOf(p.object).With(p.Patch, p.r.own.Resource().Generation(p.object), p.now) // which has no transformations any more
			return at.Current
		})
	}
	m.Related = p.related.State()
	p.indexes.Keep(true)
	a.clock.Wind(p.jobs, p.Look, time.Now(), func(due time.Time) {
		// Due, and not Resync, which would come after all of a first listing: a timer has its time. What is fresh goes
		// before both.
		p.next = p.next.Sooner(time.Until(due), queue.Due)
	})
	m.Ticks = a.clock.Ticks
	p.wind()
	p.r.machines.Finished(p.left, p.jobs, m)
	if m.Resync != nil {
		p.next = p.next.Sooner(time.Until(*m.Resync), queue.Resync)
	}
	if !p.next.Now && (p.next.After <= 0 || p.next.After > breaker.Slow) {
		m.Woken = breaker.Woken{} // the next pass has another reason
	}
	p.brake(a)
}

// stand is how the pass leaves its object. Held: its deletion waits.
func (p *run) stand(jobs pass.Jobs, readers []book.Reader, held bool) ops.Stand {
	return jobs.Stand(pass.End{
		Readers: readers, Entry: p.ledger.Entry, Blind: p.memory.Filters.Of, Blocker: p.blocker, Held: held, Children: held && !p.searched,
	})
}

// abandon remembers what handlers did in a pass that broke off, or whose write has failed, as far as
// nothing of it is lost: those that wanted nothing of the object need not run again.
func (p *run) abandon() {
	for _, j := range p.jobs.Asking() {
		p.void(j)
	}
	p.memory.Troubles.Settle()
	p.ledger.Abandon()
	if m := p.memory; p.deletion == "" {
		late := p.jobs.Rerun(p.r.rules.Readers, p.family.Writes())
		late = append(late, p.family.Leaving()...)
		m.Rerun = slices.Compact(slices.Sorted(slices.Values(append(m.Rerun, late...))))
	}
}

// wind sets when handlers run again that asked for it.
func (p *run) wind() {
	now := time.Now()
	p.memory.Again = pass.AlarmAgain(p.memory.Again, p.jobs, pass.Times{Began: p.now, Ended: now}, len(p.memory.Ignored) > 0)
	if at := p.memory.Again.Next(); !at.IsZero() {
		p.next = p.next.Sooner(at.Sub(now), queue.Due)
	}
}

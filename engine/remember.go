// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

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

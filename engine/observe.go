// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/pass"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// changes are what a pass has to deal with.
type changes struct {
	inbox.Changes
	// of are handlers that are to look again though others are not: as if a child had changed, or at the next
	// resync.
	of []string
	// resync: the object's resync period has passed.
	resync bool
	// clock are the object's timers.
	clock pass.Clock
}

// observe finds out what has come up for the object's handlers.
func (p *run) observe(news inbox.Changes) changes {
	p.memory.Filters.Begin()
	p.hear(news.Event)
	p.tend(false)
	n := changes{Changes: news}
	if timers := p.r.rules.Timers; len(timers) > 0 && p.deletion == "" {
		n.clock = pass.StartClock(timers, pass.ClockPass{
			Now: p.now, Before: p.memory.Ticks, Fresh: news.Fresh, Look: p.Look, Ledger: p.ledger,
			About: func(r book.Reader) *dsl.Subject {
				return p.subject(r, dsl.Timer, book.Record{}, p.family.Reader(), p.indexes.For(r.ID, dsl.Timer))
			},
		})
	}
	if again := p.related.Refresh(p.memory.Related, news.Related); again > 0 {
		p.next = p.next.Sooner(again, queue.Resync)
	}
	if again := p.indexes.Refresh(); again > 0 {
		p.next = p.next.Sooner(again, queue.Resync)
	}
	p.family.Claims.Blind(func(at int) bool { // asks those that do not see it, too
		r := p.r.rules.Readers[at]
		return p.sees(r, pass.AskFor(r.Handler)).Keeps()
	})
	n.of = slices.Concat(p.memory.Rerun, p.family.Claims.Asked())
	n.resync = p.memory.Resync != nil && !p.now.Before(*p.memory.Resync)
	return n
}

// hear makes handlers of events run for what the watch has told. It is in their entries from there on, so it is
// told again to those alone that are not through with it.
func (p *run) hear(event apiwatch.EventType) {
	if event == "" && !p.memory.Ledger.Known() {
		event = apiwatch.Added // to this process
	}
	if event == "" || !p.r.rules.Events {
		return
	}
	p.memory.Event = event
	for _, r := range p.r.rules.Readers {
		if r.On(dsl.Event) {
			p.ledger.Put(r, p.ledger.Entry(r).Wakes(dsl.Event))
		}
	}
}

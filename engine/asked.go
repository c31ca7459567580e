// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/collision"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/pass"
)

// undecided names a handler, other than but, that may want a child of a kind and has not said so yet. It is empty when all
// have: a handler that has succeeded since the last change has applied the children that it wants.
func (p *run) undecided(but string, kind schema.GroupKind) (handler string) {
	p.asking.Lock()
	defer p.asking.Unlock()
	for _, r := range p.r.rules.Readers {
		if r.ID != but && !collision.Lasts(r.Handler) && collision.MayMake(p.r.spec, r.Handler, kind) && p.unsaid(r) {
			return r.ID
		}
	}
	return ""
}

// unsaid reports whether a handler is due in this pass and not through, has failed, or has a filter that cannot be asked.
func (p *run) unsaid(r book.Reader) bool {
	if j := p.jobs.Of(r); j != nil {
		return !j.Through()
	}
	e := p.entry(r)
	_, c := pass.Decide(r.Handler, e, p.situation(r, p.come))
	if c == "" {
		c = pass.AskFor(r.Handler)
		if sees, err := p.asks(r, c); !sees || err != nil {
			return err != nil
		}
		return p.jobs.Record(r, e).Failed || r.On(dsl.Timer) && !p.come.clock.Ran(r)
	}
	sees, err := p.asks(r, c)
	return sees || err != nil
}

// asks evaluates a handler's filters without keeping the answer: others may change what they look at before its turn.
func (p *run) asks(r book.Reader, c dsl.Cause) (bool, error) {
	if !filter.Chooses(r.Handler, p.Current) || r.When == nil {
		return filter.Chooses(r.Handler, p.Current), nil
	}
	return attempt.Ask(r.When, p.subject(r, c, p.ledger.Entry(r).Try, p.family.Reader(), p.indexes.For(r.ID, c)))
}

// askAgain names the handlers that gave up a child which stays for now: they run again. The next pass comes at once when no
// other handler may want such a child any more.
func (p *run) askAgain() []string {
	leaving := p.family.Leaving()
	if undecided := p.family.Undecided(); len(leaving) > 0 && !undecided {
		p.next = p.next.AtOnce()
	}
	return leaving
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/claim"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/plan"
)

// undecided names a handler that may want a child of a kind and has yet to say so, another one than the one given; empty
// when all have said: who has run and succeeded since the object and what is beside it changed has applied what it wants.
func (p *pass) undecided(but string, kind schema.GroupKind) (handler string) {
	p.asking.Lock()
	defer p.asking.Unlock()
	for _, r := range p.r.rules.Readers {
		if r.ID != but && !claim.Lasts(r.Handler) && claim.MayMake(p.r.spec, r.Handler, kind) && p.unsaid(r) {
			return r.ID
		}
	}
	return ""
}

// unsaid reports whether a handler has something to do in this pass that it is not through with, or cannot be asked.
func (p *pass) unsaid(r book.Reader) bool {
	if j := p.jobs.Of(r); j != nil {
		return !j.Through()
	}
	e := p.entry(r)
	_, c := plan.Decide(r.Handler, e, p.situation(r, p.come))
	if c == "" {
		c = plan.AskFor(r.Handler)
		if sees, err := p.asks(r, c); !sees || err != nil {
			return err != nil
		}
		return p.jobs.Record(r, e).Failed || r.On(dsl.Timer) && !p.come.clock.Ran(r)
	}
	sees, err := p.asks(r, c)
	return sees || err != nil
}

// asks asks a handler's filters without keeping the answer: others may change what they look at before its turn.
func (p *pass) asks(r book.Reader, c dsl.Cause) (bool, error) {
	if !filter.Chooses(r.Handler, p.Current) || r.When == nil {
		return filter.Chooses(r.Handler, p.Current), nil
	}
	return attempt.Ask(r.When, p.subject(r, c, p.ledger.Entry(r).Try, p.family.Reader(), p.indexes.For(r.ID, c)))
}

// askAgain names the handlers that are to run again because a child stays which they have given up. The next pass comes at
// once when all others have said meanwhile that they do not want it.
func (p *pass) askAgain() []string {
	leaving := p.family.Leaving()
	if undecided := p.family.Undecided(); len(leaving) > 0 && !undecided {
		p.next = p.next.AtOnce()
	}
	return leaving
}

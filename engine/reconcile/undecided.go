// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// publish shows a state to code that runs while the step waits: a handler, or a write.
func (p *run) publish(st State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.published = st
}

// Undecided names a handler, other than but, that may want a child of a kind and has not said so yet. It is empty when all
// have: a handler that has succeeded since the last change has applied the children that it wants.
func (p *run) Undecided(but string, kind schema.GroupKind) (handler string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.Rules.Readers {
		if r.ID != but && !collision.Lasts(r.Handler) && collision.MayMake(p.Rules.Spec, r.Handler, kind) && p.unsaid(p.published, r) {
			return r.ID
		}
	}
	return ""
}

// unsaid reports whether a handler is due in this reconcile and not through, has failed, or has a filter that cannot be asked.
func (p *run) unsaid(st State, r progress.Handler) bool {
	if j := st.Jobs.Of(r); j != nil {
		return !j.Through()
	}
	e := p.entry(st, r)
	s := p.situation(st, r)
	if r.AtTime() && p.Deletion == "" {
		m := p.workOut(st.Draft, r)
		if m.err != nil {
			return true
		}
		s.Fires = e.Arrived(m.at, p.Now, s.Now)
	}
	_, c := Decide(r.Handler, e, s)
	if c == "" {
		c = askFor(r.Handler)
		if sees, err := p.asks(st.Draft, r, c); !sees || err != nil {
			return err != nil
		}
		return st.Jobs.Record(r, e).Failed || r.On(dsl.Timer) && !r.AtTime() && !st.Found.Clock.Ran(r)
	}
	sees, err := p.asks(st.Draft, r, c)
	return sees || err != nil
}

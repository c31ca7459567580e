// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// snapshot answers questions of children about handlers, with the state of a run at one moment.
type snapshot struct {
	*run
	State
	// attempt is the attempt that is about to begin, or nil.
	attempt *Attempt
}

var _ children.Others = (*snapshot)(nil)

// States implements [children.Others]. It returns how the other handlers' attempts have ended.
func (s *snapshot) States() []collision.HandlerState { return s.Attempts.States(s.attempt) }

// Undecided implements [children.Others]. A handler that has succeeded since the last change has already applied the
// children that it wants.
func (s *snapshot) Undecided(but string, kind schema.GroupKind) (handler string) {
	for _, r := range s.Rules.Readers {
		if r.ID != but && !collision.IsForDeletionsOnly(r.Handler) && collision.MayMake(s.Rules.Spec, r.Handler, kind) && s.isUndecided(s.State, r) {
			return r.ID
		}
	}
	return ""
}

// isUndecided reports whether a handler is due and not through, has failed, or has a filter that fails.
func (p *run) isUndecided(st State, r progress.Handler) bool {
	if j := st.Attempts.Of(r); j != nil {
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
		return st.Attempts.Record(r, e).Failed || r.On(dsl.Timer) && !r.AtTime() && !st.Found.Clock.Ran(r)
	}
	sees, err := p.asks(st.Draft, r, c)
	return sees || err != nil
}

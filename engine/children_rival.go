// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"

	"github.com/handwerk-dev/handwerk/dsl"
)

// rival returns an error where another handler of the object keeps this child, too, and otherwise: they would
// undo each other's work at each pass. The first one has it, from the pass in which both applied it until it
// runs and does not apply it any more. Handlers that make one child at different times, as one of create and
// one of update do, are no rivals.
func (c *children) rival(w *wanted) error {
	p, id := c.pass, w.id()
	live := p.known(w)
	p.mu.Lock()
	first, disputed := p.memory.rivals[id]
	if maker := p.makers[id]; maker != "" {
		first = maker
	}
	p.mu.Unlock()
	if first == "" || first == c.handler || live == nil {
		p.made(id, c.handler)
		return nil
	}
	stale, err := w.applier.Stale(w.object, live)
	if err != nil || !stale {
		return nil // what is wrong with it Apply says
	}
	if !disputed {
		p.mu.Lock()
		if p.memory.rivals == nil {
			p.memory.rivals = map[childID]string{}
		}
		p.memory.rivals[id] = first
		p.mu.Unlock()
	}
	return &dsl.CollisionError{Kind: w.object.GetKind(), Namespace: w.key.Namespace, Name: w.key.Name, Handler: first}
}

// made notes which handler applies a child in this pass.
func (p *pass) made(id childID, handler string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.makers == nil {
		p.makers = map[childID]string{}
	}
	p.makers[id] = handler
}

// yield gives up what a handler kept against others, and has not applied in the run that has succeeded now.
func (p *pass) yield(handler string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.memory.rivals, func(id childID, first string) bool {
		return first == handler && p.makers[id] != handler
	})
}

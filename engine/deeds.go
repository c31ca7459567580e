// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// did says what a handler did to an object: one line for each write. Creations and deletions of
// children are Events too, where the operator's settings ask for them.
func (p *pass) did(handler string, deed child.Deed, what, detail string) {
	line := sentence(deed, what)
	if detail != "" {
		line += ": " + detail
	}
	p.log().Info(line, "handler", handler)
}

// The deeds beside those of applying a child.
const (
	deleted  child.Deed = "deleted"
	released child.Deed = "released"
)

// sentence is a deed in the past tense with its object, as in "created Deployment shop/web".
func sentence(deed child.Deed, what string) string { return string(deed) + " " + what }

// didChild is did for a child.
func (p *pass) didChild(handler string, deed child.Deed, what, detail string) {
	p.did(handler, deed, what, detail)
	if p.r.engine.op.Settings.Events != dsl.EventsChanges {
		return
	}
	switch deed {
	case child.Created:
		p.r.engine.events.Send(ops.ByChange, p.object, handler, dsl.Normal, "ChildCreated", sentence(deed, what))
	case deleted:
		p.r.engine.events.Send(ops.ByChange, p.object, handler, dsl.Normal, "ChildDeleted", sentence(deed, what))
	}
}

// did says what a handler did to a child. Handlers that read children run again for what others did.
func (c *children) did(deed child.Deed, what, detail string) {
	p := c.pass
	p.mu.Lock()
	if p.writers == nil {
		p.writers = map[string]int{}
	}
	p.writers[c.attempt.Handler] = c.turn
	p.mu.Unlock()
	p.didChild(c.attempt.Handler, deed, what, detail)
}

// nameFor names an object for people, as in "Deployment shop/web".
func nameFor(o *unstructured.Unstructured) string { return o.GetKind() + " " + nameOf(o).String() }

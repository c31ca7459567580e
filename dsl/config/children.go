// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// children are the named children of a resource that its handlers make.
type children struct {
	// made are the makers of children, by the children's names.
	made map[string]maker
	// kept are the handlers that always make an object, by object.
	kept map[string]keeper
}

// maker is the handler that makes a named child, and the place.
type maker struct {
	place
	// state is the state of a machine that makes it; empty outside of machines.
	state string
	child shape.NamedChild
}

// shares reports whether a handler may make the same child, too. That is so in another state of the same machine,
// because an object is only in one of the two.
func (m maker) shares(h *making) bool {
	first, _, within := strings.Cut(m.state, ".")
	other, _, too := strings.Cut(h.state, ".")
	return within && too && first == other && m.state != h.state
}

// keeper is a handler that makes a child, and its place.
type keeper struct {
	id string
	place
	// partly: the handler does not run for every object.
	partly bool
}

// add notes a child. It reports whether the name is new, and whether the handler may use it: it may not if another
// handler has it. A child of another kind in another state is a fault, but its object is still checked by keep.
func (c *children) add(on place, h *making, child shape.NamedChild) (added, ok bool) {
	first, twice := c.made[child.Name]
	switch {
	case !twice:
		c.made[child.Name] = maker{on, h.state, child}
		return true, true
	case !first.shares(h):
		on.Fault(on.at, "there is a child of this name already (at %s)%s", first.where(first.at), on.twice(first.place))
		return false, false
	case first.child.Kind != child.Kind || first.child.List != child.List:
		on.Fault(on.at, "a child of this name is something else in another state (at %s): give this one a name of its own", first.where(first.at))
	}
	return false, true
}

// keep notes a fault if another handler makes the child's object, too. If neither of the two runs for every object,
// they may run for different objects, and there is no fault.
func (c *children) keep(on place, h *making, child shape.NamedChild) {
	if child.Object == "" {
		return
	}
	first, twice := c.kept[child.Object]
	if twice && (!first.partly || !h.partial()) {
		on.Fault(on.at, "handlers %s (at %s) and %s make one object, %s, and would undo each other's work: give each a child of its own", first.id, first.where(first.at), h.ID, child.Object)
		return
	}
	c.kept[child.Object] = keeper{h.ID, on, h.partial()}
}

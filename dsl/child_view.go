// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// ChildView is the part of the children of one name that their owner's handlers look at. A change of the rest runs no
// handler.
type ChildView struct {
	// Fields are the paths: those that the template sets, those that expressions read, and where the engine keeps the
	// condition [Ready], those by which it judges the child.
	Fields []Path
	// Strict: handlers take away what others add, but for the control plane and the field managers in Allow; see
	// [DriftStrict].
	Strict bool
	Allow  []string
}

// ChildView returns what handlers look at in the children of a name. Known is false if they may look at anything: a handler's
// code is not known, or runs for every change of a child because its author says so.
func (r *Resource) ChildView(name string) (view ChildView, known bool) {
	if name == "" || slices.ContainsFunc(r.handlers, (*Handler).looksAtAnyChild) {
		return view, false
	}
	if view.Fields, known = r.childFields(name); !known {
		return ChildView{}, false
	}
	for _, made := range r.Makes {
		if made.Name == name {
			view.Strict = view.Strict || made.Strict
			view.Allow = append(view.Allow, made.Allow...)
		}
	}
	view.Allow = slices.DeleteFunc(view.Allow, func(manager string) bool { return !r.allowed(name, manager) })
	if r.KeepsReady() {
		view.Fields = append(view.Fields, ReadinessFields()...)
	}
	return view, true
}

// childFields returns the fields that the templates of the children of a name set, and those that expressions read of them. They
// are not known if one of these may be any.
func (r *Resource) childFields(name string) (fields []Path, known bool) {
	for _, made := range r.Makes {
		if made.Name != name {
			continue
		}
		if known = made.Sets != nil; !known {
			return nil, false
		}
		for _, path := range made.Sets {
			fields = append(fields, Path(path))
		}
	}
	for _, h := range r.handlers {
		for _, read := range h.Known.Reads.ChildFields {
			switch {
			case len(read) == 0:
				return nil, false
			case read[0] == name:
				fields = append(fields, read[1:])
			}
		}
	}
	return fields, known && !slices.ContainsFunc(fields, func(p Path) bool { return len(p) == 0 })
}

// allowed reports whether no handler takes away what a field manager adds to the children of a name.
func (r *Resource) allowed(name, manager string) bool {
	return !slices.ContainsFunc(r.Makes, func(made shape.NamedChild) bool {
		return made.Name == name && !slices.Contains(made.Allow, manager)
	})
}

// looksAtAnyChild reports whether the handler may look at any field of any child: changes of children call it, or make
// its filter be asked, and its code may read more than is known.
func (h *Handler) looksAtAnyChild() bool {
	if slices.Contains(h.given, Child) {
		return true // by name: for every change
	}
	called := h.On(Child) || h.When != nil || h.Machine != nil
	return called && (!h.Known.Reads.Only || !h.Known.Reads.Complete)
}

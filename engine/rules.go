// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// rules are what a resource's handlers ask for, worked out once: what is kept on its objects and
// whether they need the finalizer.
type rules struct {
	// handlers are those that run for objects, timers those of them that run by time.
	handlers, timers []*dsl.Handler
	// schedules run for the resource as a whole.
	schedules []*dsl.Handler
	// views are the fields that handlers look at; an empty path is the whole essence.
	views []dsl.Path
	// stores: a base is kept, because some handler depends on what was handled before and is not
	// level-triggered.
	stores bool
	// essence: the base is kept whole, or limited to fields, because a handler uses old or diff.
	essence bool
	fields  []dsl.Path
	// deletes: there are delete handlers.
	deletes bool
	// finalizes: some delete handler holds its object.
	finalizes bool
}

func newRules(r *dsl.Resource) rules {
	out := rules{}
	for _, h := range r.Handlers() {
		if h.Whole {
			out.schedules = append(out.schedules, h)
		} else {
			out.add(h)
		}
	}
	if slices.ContainsFunc(out.fields, func(p dsl.Path) bool { return len(p) == 0 }) {
		out.fields = nil // the essence is kept whole
	}
	if r.Name.Resource == "secrets" && r.Name.Group == "" {
		out.essence = false // values of a Secret are never copied into annotations
	}
	return out
}

func (r *rules) add(h *dsl.Handler) {
	r.handlers = append(r.handlers, h)
	if h.On(dsl.Timer) {
		r.timers = append(r.timers, h)
	}
	if !slices.ContainsFunc(r.views, func(p dsl.Path) bool { return slices.Equal(p, h.Field) }) {
		r.views = append(r.views, h.Field)
	}
	r.deletes = r.deletes || h.On(dsl.Delete)
	r.finalizes = r.finalizes || h.On(dsl.Delete) && !h.NoFinalizer
	if !storing(h) {
		return
	}
	r.stores = true
	if h.On(dsl.Update) && !h.NoOld {
		r.essence = true
		r.fields = append(r.fields, h.Field)
	}
}

// storing reports whether the handler is one for which a base is kept.
func storing(h *dsl.Handler) bool {
	return !h.Level() && (h.On(dsl.Create) || h.On(dsl.Update))
}

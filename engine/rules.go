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
	handlers []*dsl.Handler
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
	out := rules{handlers: r.Handlers()}
	whole := false
	for _, h := range out.handlers {
		if !slices.ContainsFunc(out.views, func(p dsl.Path) bool { return slices.Equal(p, h.Field) }) {
			out.views = append(out.views, h.Field)
		}
		out.deletes = out.deletes || h.On(dsl.Delete)
		if h.On(dsl.Delete) && !h.NoFinalizer {
			out.finalizes = true
		}
		if h.Level() || !h.On(dsl.Create) && !h.On(dsl.Update) {
			continue
		}
		out.stores = true
		if h.On(dsl.Update) && !h.NoOld {
			out.essence = true
			whole = whole || len(h.Field) == 0
			out.fields = append(out.fields, h.Field)
		}
	}
	if whole {
		out.fields = nil
	}
	if r.Name.Resource == "secrets" && r.Name.Group == "" {
		out.essence = false // values of a Secret are never copied into annotations
	}
	return out
}

// storing reports whether the handler is one for which a base is kept.
func storing(h *dsl.Handler) bool {
	return !h.Level() && (h.On(dsl.Create) || h.On(dsl.Update))
}

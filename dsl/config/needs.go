// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/actions"
	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// needs are the rights that a handler needs: those that it says, and those that its actions are known to need.
// Declared: there are no others.
func (w *watched) needs(at path, h *handler, built *actions.Built) (all []dsl.Need, declared bool) {
	said := make([]dsl.Need, len(h.Needs))
	for i, n := range h.Needs {
		var err error
		if said[i], err = dsl.ParseNeed("get", n.Resource); err != nil && n.Resource != "" {
			w.Fault(at.Index(i).Key("resource"), "%v", err)
		}
		said[i].Verbs, said[i].Names, said[i].Namespace = n.Verbs, n.Names, n.Namespace
	}
	told := built.Needs != nil && !h.untold && !anyKind(built)
	return slices.Concat(said, built.Needs), told || len(said) > 0
}

// anyKind reports whether a handler makes children whose kind is worked out when it runs.
func anyKind(built *actions.Built) bool {
	return slices.ContainsFunc(built.Children, func(c shape.NamedChild) bool { return c.Kind.Empty() })
}

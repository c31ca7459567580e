// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/handwerk-dev/handwerk/dsl"
)

// needs are the rights that a handler needs: those that its actions are known to need, and those that
// it says. Unless it says any, or all its actions are known, there may be others.
func (w *watched) needs(at path, h *handler, built *dsl.Built) []dsl.Option {
	var said []dsl.Need
	for i := range h.Needs {
		if need, ok := w.need(at.Index(i), &h.Needs[i]); ok {
			said = append(said, need)
		}
	}
	untold := h.untold || anyKind(built)
	if len(said)+len(built.Needs) == 0 && (built.Needs == nil || untold) {
		return nil
	}
	out := []dsl.Option{dsl.WithNeeds(slices.Concat(built.Needs, said)...)}
	if untold && len(said) == 0 {
		out = append(out, func(into *dsl.Handler) { into.Declared = false })
	}
	return out
}

// anyKind reports whether a handler makes children whose kind is worked out when it runs.
func anyKind(built *dsl.Built) bool {
	return slices.ContainsFunc(built.Children, func(c dsl.NamedChild) bool { return c.Kind.Empty() })
}

func (w *watched) need(at path, of *need) (out dsl.Need, ok bool) {
	if of.Resource == "" || len(of.Verbs) == 0 {
		return out, false // which was said
	}
	ok = true
	for i, verb := range of.Verbs {
		if verb == "" {
			continue
		}
		if err := dsl.CheckVerb(verb); err != nil {
			w.Fault(at.Key("verbs").Index(i), "%v", err)
			ok = false
		}
	}
	if faults := validation.IsDNS1123Label(of.Namespace); of.Namespace != "" && len(faults) > 0 {
		w.Fault(at.Key("namespace"), "want the name of a namespace: %s", faults[0])
		ok = false
	}
	out, err := dsl.ParseNeed("get", of.Resource)
	if err != nil {
		w.Fault(at.Key("resource"), "%v", err)
		return out, false
	}
	out.Verbs, out.Names, out.Namespace = of.Verbs, of.Names, of.Namespace
	return out, ok
}

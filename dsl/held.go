// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"slices"
)

// Held returns the fields of a resource's objects that caches need to hold, beside metadata: those of Keep; without it,
// where all that looks at the objects is known to look at nothing else, what handlers read and set, and
// status.conditions. Empty means all of an object.
func (op *Operator) Held(r *Resource) []Path {
	out := slices.Clone(r.Keep)
	if len(out) == 0 {
		out = op.needed(r)
	}
	if len(out) > 0 && r.ObservedGeneration {
		out = append(out, Path{"status", "observedGeneration"})
	}
	return out
}

// needed are the fields that a resource's handlers look at and set, nil where they may look at any, or somebody else may.
func (op *Operator) needed(r *Resource) []Path {
	if cmp.Or(r.Cache, CacheCompact) != CacheCompact || len(r.relations) > 0 || op.shows(r) {
		return nil
	}
	out := []Path{{"status", "conditions"}}
	for _, h := range r.handlers {
		view := h.View()
		if !view.Only || h.ResourceWide || !h.Level() {
			return nil
		}
		out = append(append(out, view.Beside...), h.Sets...)
	}
	return distinct(out)
}

// shows reports whether handlers see the resource's objects beside their own ones: as children, as related objects, or
// as those of a resource that is declared twice. One cache serves both then, so it holds all of an object.
func (op *Operator) shows(r *Resource) bool {
	return slices.ContainsFunc(op.resources, func(other *Resource) bool {
		if other != r && other.Name.Objects() == r.Name.Objects() {
			return true
		}
		for name := range other.Owned() {
			if name.Objects() == r.Name.Objects() {
				return true
			}
		}
		return slices.ContainsFunc(other.relations, func(with Relation) bool { return with.Resource.Objects() == r.Name.Objects() })
	})
}

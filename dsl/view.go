// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"
	"strings"
)

// View is what a handler looks at of its object: when that has changed since it last handled it, it runs.
// The zero View is the essence: all but the status and what is bookkeeping.
type View struct {
	// Fields are those that the handler names, all that it looks at then.
	Fields []Path
	// Beside is what it looks at besides; where Only is set, what it looks at instead. There may be nothing.
	Beside []Path
	Only   bool
}

// View returns what the handler looks at: the fields that it names, or the essence. A level-triggered one
// looks also at what it is known to read of status and of the metadata; or, where its code looks at nothing
// else and it names no field, at what it reads alone. See [Reads].
func (h *Handler) View() View {
	v := View{Fields: distinct(h.Fields)}
	if !h.Level() {
		return v
	}
	v.Only = h.Reads.Only && len(v.Fields) == 0
	for _, p := range h.Reads.Paths {
		switch {
		case len(p) == 0: // all of the object
			v.Only = false
			v.Beside = append(v.Beside, Path{"status"}, Path{"metadata"})
		case v.Only || !p.Authored():
			v.Beside = append(v.Beside, p)
		}
	}
	v.Beside = distinct(v.Beside)
	return v
}

// Essence reports whether all of the essence is part of the view.
func (v View) Essence() bool { return len(v.Fields) == 0 && !v.Only }

// Paths are the paths of the view, in order, without those of the essence. The slice is the caller's.
func (v View) Paths() []Path { return slices.Concat(v.Fields, v.Beside) }

// String tells people what is looked at.
func (v View) String() string {
	var out []string
	if v.Essence() {
		out = []string{"all but the status"}
	}
	for _, p := range v.Paths() {
		out = append(out, p.String())
	}
	if len(out) == 0 {
		return "nothing that changes"
	}
	return strings.Join(out, ", ")
}

// distinct returns the paths in order, each once, without those that others lead to.
func distinct(paths []Path) (out []Path) {
	paths = slices.Clone(paths)
	slices.SortFunc(paths, func(a, b Path) int { return slices.Compare(a, b) })
	for _, p := range paths {
		if n := len(out); len(p) > 0 && (n == 0 || !out[n-1].Leads(p)) {
			out = append(out, p)
		}
	}
	return out
}

// Loops returns the ids of handlers that feed each other: each sets something that the next one looks at by
// name, and the last one something that the first one does. Where what they set never comes to rest, they run
// for ever.
func (r *Resource) Loops() (out [][]string) {
	seen := map[string]bool{}
	for _, h := range r.handlers {
		if loop := r.back(h, h, nil); loop != nil && !seen[h.ID] {
			for _, id := range loop {
				seen[id] = true
			}
			out = append(out, loop)
		}
	}
	return out
}

// back returns the handlers that lead from one back to the first, nil when none do.
func (r *Resource) back(first, from *Handler, way []string) []string {
	way = append(slices.Clone(way), from.ID)
	for _, next := range r.handlers {
		switch {
		case next == from || !from.feeds(next):
		case next == first:
			return way
		case !slices.Contains(way, next.ID):
			if loop := r.back(first, next, way); loop != nil {
				return loop
			}
		}
	}
	return nil
}

// feeds reports whether the handler sets something that another one looks at by name.
func (h *Handler) feeds(other *Handler) bool {
	return slices.ContainsFunc(other.View().Paths(), func(p Path) bool {
		return slices.ContainsFunc(h.Sets, p.Covers)
	})
}

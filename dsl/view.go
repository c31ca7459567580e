// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"
	"strings"
)

// View is the part of an object that a handler looks at. A change of it since the handler handled it last runs the
// handler. The zero View is the essence: all but the status and bookkeeping metadata.
type View struct {
	// Fields, when set, are the fields that the handler names. They are then the whole view.
	Fields []Path
	// Beside are additional paths. If Only is set, they replace the essence; there may be none.
	Beside []Path
	Only   bool
	// Always: the handler also runs for objects that have none of Fields.
	Always bool
	// Parents are maps whose existence the handler looks at.
	Parents []Path
	// Ignored are paths whose changes the handler ignores.
	Ignored []Path
	// Outcomes are the parts of other handlers' outcomes that the handler looks at, each with the handler's id first.
	Outcomes []Path
}

// View returns the handler's view: the fields that it names, or the essence. A level-triggered handler also looks
// at the fields in status and metadata that it is known to read. If its code depends only on what it is known to
// read, and it names no fields, these fields are the view. See [KnownReads] and [Reads]. For other handlers, Reads
// limits the essence.
func (h *Handler) View() View {
	v := View{Fields: distinct(h.Fields)}
	if h.of != nil {
		v.Ignored = distinct(h.of.Ignore)
	}
	if !h.Level() {
		if h.sees != nil && len(v.Fields) == 0 {
			v.Always = true
			v.Fields = distinct(slices.DeleteFunc(h.looksAt(), func(p Path) bool { return !p.Authored() }))
		}
		return v
	}
	v.Only = (h.Known.Reads.Only || h.sees != nil) && len(v.Fields) == 0
	for _, p := range h.asked() {
		switch {
		case len(p) == 0: // the whole object
			v.Only = false
			v.Beside = append(v.Beside, Path{"status"}, Path{"metadata"})
		case v.Only || !p.Authored():
			v.Beside = append(v.Beside, p)
		}
	}
	v.Beside = distinct(v.Beside)
	for _, p := range h.Known.Reads.Parents {
		if len(p) > 0 && (len(v.Fields) == 0 || !p.Authored()) {
			v.Parents = append(v.Parents, p)
		}
	}
	v.Outcomes = distinct(h.Known.Reads.Outcomes)
	return v
}

// asked returns the fields of the object that the handler's code and filters are known to read.
func (h *Handler) asked() []Path {
	out := slices.Clone(h.Known.Reads.Paths)
	if h.sees != nil {
		out = append(out, h.looksAt()...)
	}
	for _, m := range h.Annotations {
		out = append(out, Path{"metadata", "annotations", m.Key})
	}
	return out
}

// View returns the view of one of the operator's handlers. For a machine, it includes the annotation goto, whose
// key depends on the operator.
func (op *Operator) View(h *Handler) View {
	v := h.View()
	if h.Machine != nil {
		v.Beside = append(v.Beside, Path{"metadata", "annotations", h.Machine.GotoKey(op.Prefix())})
	}
	return v
}

// Essence reports whether the view includes the whole essence.
func (v View) Essence() bool { return len(v.Fields) == 0 && !v.Only }

// Holds reports whether the view includes all of these paths.
func (v View) Holds(paths []Path) bool {
	return !slices.ContainsFunc(paths, func(p Path) bool {
		if len(p) == 0 {
			return !v.Essence() || !v.Holds([]Path{{"status"}, {"metadata"}})
		}
		inside := v.Essence() && p.Authored() || slices.ContainsFunc(v.Paths(), func(of Path) bool { return of.Leads(p) })
		return !inside
	})
}

// Paths returns the paths of the view, in order, without those of the essence. The slice is the caller's.
func (v View) Paths() []Path { return slices.Concat(v.Fields, v.Beside) }

// String describes the view for people.
func (v View) String() string {
	var out []string
	all := v.Holds([]Path{{}})
	if all {
		out = []string{"all of the object"}
	} else if v.Essence() {
		out = []string{"all but the status"}
	}
	for _, p := range v.Paths() {
		if !all {
			out = append(out, p.String())
		}
	}
	for _, p := range v.Outcomes {
		out = append(out, append(Path{"handlers"}, p...).String())
	}
	if len(out) == 0 {
		return "nothing of the object itself"
	}
	return strings.Join(out, ", ")
}

// distinct returns the paths in order, each once, without paths that have another one as prefix.
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

// Loops returns the ids of handlers that trigger each other: each sets a field that the next one names, and the
// last one sets a field that the first one names. They run for ever unless the values come to rest.
func (r *Resource) Loops() (out [][]string) {
	next, listed := r.fed(), map[*Handler]bool{}
	for _, h := range r.handlers {
		if listed[h] {
			continue
		}
		var ids []string
		for _, one := range back(h, next) {
			listed[one] = true
			ids = append(ids, one.ID)
		}
		if len(ids) > 0 {
			out = append(out, ids)
		}
	}
	return out
}

// fed returns for each handler the handlers that look at fields that it sets.
func (r *Resource) fed() map[*Handler][]*Handler {
	views, out := map[*Handler][]Path{}, map[*Handler][]*Handler{}
	for _, h := range r.handlers {
		views[h] = h.View().Paths()
	}
	for _, h := range r.handlers {
		for _, other := range r.handlers {
			if other != h && h.feeds(views[other]) {
				out[h] = append(out[h], other)
			}
		}
	}
	return out
}

// back returns the handlers on a way from one back to itself, or nil. Each is visited once.
func back(first *Handler, next map[*Handler][]*Handler) []*Handler {
	seen := map[*Handler]bool{}
	var follow func(h *Handler, way []*Handler) []*Handler
	follow = func(h *Handler, way []*Handler) []*Handler {
		way = append(slices.Clone(way), h)
		for _, other := range next[h] {
			if other == first {
				return way
			}
			if seen[other] {
				continue
			}
			seen[other] = true
			if found := follow(other, way); found != nil {
				return found
			}
		}
		return nil
	}
	return follow(first, nil)
}

// feeds reports whether the handler sets a field of the view.
func (h *Handler) feeds(view []Path) bool {
	return slices.ContainsFunc(view, func(p Path) bool { return slices.ContainsFunc(h.Known.Sets, p.Covers) })
}

// KnownReads is what code is known to read of its object and of other objects.
type KnownReads struct {
	// Paths are fields of the object. An empty path is the whole object.
	Paths []Path
	// Parents are fields that the code tests for content, so it matters whether they exist themselves.
	Parents []Path
	// Children and Related report whether the code reads any of them. ChildNames and RelatedNames say which, as far
	// as that is known, in the form of Indexes.
	Children, Related        bool
	ChildNames, RelatedNames []string
	// ChildFields are the fields of children that the code reads. Each begins with the child's name; an empty path is
	// any field of any child.
	ChildFields []Path
	// Indexes are the names of the indexes that the code reads, sorted. "*" stands for any.
	Indexes []string
	// Outcomes are the parts of other handlers' outcomes that the code reads, each with the handler's id first. An empty
	// path is any part of any outcome.
	Outcomes []Path
	// Passing: the code reads values whose changes do not run it: the time, its variables, or the previous state.
	Passing bool
	// Values are the sources of values that the code reads, beyond names and kinds: self, and as in children.db,
	// related.creds and indexes.tokens, with "*" for any name. Complete: Values lists all of them.
	Values   []string
	Complete bool
	// Only: the result of the code depends only on what it reads, so it need not run when something else changes.
	Only bool
}

// And returns what two pieces of code read together.
func (r KnownReads) And(other KnownReads) KnownReads {
	return KnownReads{
		Paths:    append(slices.Clone(r.Paths), other.Paths...),
		Parents:  append(slices.Clone(r.Parents), other.Parents...),
		Children: r.Children || other.Children, Related: r.Related || other.Related,
		ChildNames: together(r.ChildNames, other.ChildNames), RelatedNames: together(r.RelatedNames, other.RelatedNames),
		ChildFields: append(slices.Clone(r.ChildFields), other.ChildFields...),
		Indexes:     together(r.Indexes, other.Indexes),
		Outcomes:    append(slices.Clone(r.Outcomes), other.Outcomes...),
		Values:      together(r.Values, other.Values), Complete: r.Complete && other.Complete,
		Passing: r.Passing || other.Passing, Only: r.Only && other.Only,
	}
}

// together returns the names of both, sorted, each once.
func together(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// around removes the causes for changes of children, related objects and indexes if the handler's code depends only
// on what it reads and reads none of these. Causes that were declared by name stay.
func (h *Handler) around(causes []Cause) []Cause {
	if !h.Known.Reads.Only || !h.Level() {
		return causes
	}
	return slices.DeleteFunc(causes, func(c Cause) bool {
		reads := c.row().reads
		return reads != nil && !reads(h.Known.Reads) && !slices.Contains(h.given, c) && !slices.Contains(h.Known.Brings, c)
	})
}

// Woken reports whether the handler runs for every change of the other objects that it reads.
func (h *Handler) Woken() bool {
	return !slices.ContainsFunc(causeTable, func(row causeRow) bool { return row.reads != nil && row.reads(h.Known.Reads) && !h.On(row.cause) })
}

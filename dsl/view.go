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
	// Parents are maps of which it looks whether they are there.
	Parents []Path
	// Ignored are paths whose changes are none to it.
	Ignored []Path
}

// View returns what the handler looks at: the fields that it names, or the essence. A level-triggered one
// looks also at what it is known to read of status and of the metadata; or, where its code looks at nothing
// else and it names no field, at what it reads alone. See [Reads].
func (h *Handler) View() View {
	v := View{Fields: distinct(h.Fields)}
	if h.of != nil {
		v.Ignored = distinct(h.of.Ignore)
	}
	if !h.Level() {
		return v
	}
	v.Only = h.Reads.Only && len(v.Fields) == 0
	for _, p := range h.asked() {
		switch {
		case len(p) == 0: // all of the object
			v.Only = false
			v.Beside = append(v.Beside, Path{"status"}, Path{"metadata"})
		case v.Only || !p.Authored():
			v.Beside = append(v.Beside, p)
		}
	}
	v.Beside = distinct(v.Beside)
	for _, p := range h.Reads.Parents {
		if len(p) > 0 && (len(v.Fields) == 0 || !p.Authored()) {
			v.Parents = append(v.Parents, p)
		}
	}
	return v
}

// asked are the fields of its object that the handler's code and filters are known to read.
func (h *Handler) asked() []Path {
	out := slices.Clone(h.Reads.Paths)
	for _, m := range h.Annotations {
		out = append(out, Path{"metadata", "annotations", m.Key})
	}
	return out
}

// View returns what one of the operator's handlers looks at, with the annotation by which a person has its machine go to a
// state: its key is the operator's.
func (op *Operator) View(h *Handler) View {
	v := h.View()
	if h.Machine != nil {
		v.Beside = append(v.Beside, Path{"metadata", "annotations", h.Machine.GotoKey(op.Prefix())})
	}
	return v
}

// Essence reports whether all of the essence is part of the view.
func (v View) Essence() bool { return len(v.Fields) == 0 && !v.Only }

// Holds reports whether all of these paths lie in the view.
func (v View) Holds(paths []Path) bool {
	return !slices.ContainsFunc(paths, func(p Path) bool {
		if len(p) == 0 {
			return !v.Essence() || !v.Holds([]Path{{"status"}, {"metadata"}})
		}
		inside := v.Essence() && p.Authored() || slices.ContainsFunc(v.Paths(), func(of Path) bool { return of.Leads(p) })
		return !inside
	})
}

// Paths are the paths of the view, in order, without those of the essence. The slice is the caller's.
func (v View) Paths() []Path { return slices.Concat(v.Fields, v.Beside) }

// String tells people what is looked at.
func (v View) String() string {
	if v.Holds([]Path{{}}) {
		return "all of the object"
	}
	var out []string
	if v.Essence() {
		out = []string{"all but the status"}
	}
	for _, p := range v.Paths() {
		out = append(out, p.String())
	}
	if len(out) == 0 {
		return "nothing of the object itself"
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
	next, told := r.fed(), map[*Handler]bool{}
	for _, h := range r.handlers {
		if told[h] {
			continue
		}
		var ids []string
		for _, one := range back(h, next) {
			told[one] = true
			ids = append(ids, one.ID)
		}
		if len(ids) > 0 {
			out = append(out, ids)
		}
	}
	return out
}

// fed returns for each handler those that look at what it sets.
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

// back returns the handlers on a way from one back to itself, nil when there is none. Each is visited once.
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

// feeds reports whether the handler sets something that is looked at.
func (h *Handler) feeds(view []Path) bool {
	return slices.ContainsFunc(view, func(p Path) bool { return slices.ContainsFunc(h.Sets, p.Covers) })
}

// Reads is what code is known to read of its object and of what is around it.
type Reads struct {
	// Paths are fields of the object. An empty path is all of it.
	Paths []Path
	// Parents are fields of which it asks whether there is something in them: it makes a difference whether they
	// are there themselves.
	Parents []Path
	// Children and Related report whether it reads any of them. ChildNames and RelatedNames say which, as far as that is
	// known, in the form of Indexes.
	Children, Related        bool
	ChildNames, RelatedNames []string
	// Indexes are the names of those that it reads, sorted; "*" is among them where it may be any.
	Indexes []string
	// Passing: it reads what the object itself does not say, and what nobody wakes it for: the time, what it runs
	// for, or what was before.
	Passing bool
	// Values are the things whose values it reads, beyond what an object is called and what kind it is of: self, and as in
	// children.db, related.creds and indexes.tokens, with "*" for a name where it may be any. Told: there are no others;
	// without it, there may be more.
	Values []string
	Told   bool
	// Only: what the code does follows from what it reads, so it need not run when something else changes.
	Only bool
}

// And returns what two pieces of code read together.
func (r Reads) And(other Reads) Reads {
	return Reads{
		Paths:    append(slices.Clone(r.Paths), other.Paths...),
		Parents:  append(slices.Clone(r.Parents), other.Parents...),
		Children: r.Children || other.Children, Related: r.Related || other.Related,
		ChildNames: together(r.ChildNames, other.ChildNames), RelatedNames: together(r.RelatedNames, other.RelatedNames),
		Indexes: together(r.Indexes, other.Indexes),
		Values:  together(r.Values, other.Values), Told: r.Told && other.Told,
		Passing: r.Passing || other.Passing, Only: r.Only && other.Only,
	}
}

// together returns the names of both, sorted, each once.
func together(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// around returns the causes without changes of children, of related objects and of indexes where the handler's code
// looks at nothing but what it reads, and reads none of them. Causes that were given by name stay.
func (h *Handler) around(causes []Cause) []Cause {
	if !h.Reads.Only || !h.Level() {
		return causes
	}
	return slices.DeleteFunc(causes, func(c Cause) bool {
		reads := c.row().reads
		return reads != nil && !reads(h.Reads) && !slices.Contains(h.given, c) && !slices.Contains(h.Brings, c)
	})
}

// Woken reports whether the handler runs for every change of what it reads beside its object.
func (h *Handler) Woken() bool {
	return !slices.ContainsFunc(causeTable, func(row causeRow) bool { return row.reads != nil && row.reads(h.Reads) && !h.On(row.cause) })
}

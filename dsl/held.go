// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Held says which parts of a resource's objects the cache must hold. The zero value means whole objects.
type Held struct {
	// Fields are the paths to hold, outside of metadata. Empty means all.
	Fields []Path
	// Annotations are the keys of the annotations to hold. A key that ends with a slash stands for all keys with
	// this prefix. Nil means all.
	Annotations []string
}

// Held returns which parts of a resource's objects the cache must hold. With Keep, it is the fields of Keep, and
// status.conditions and status.observedGeneration, which the engine itself reads. Without Keep, and if all fields
// are known that handlers read and set, by their code or by [Reads], it is these fields, those that the engine reads,
// the operator's annotations and those that handlers name. Otherwise it is the whole object. The rest of metadata is
// always held.
func (op *Operator) Held(r *Resource) Held {
	if len(r.Keep) == 0 {
		return op.needed(r)
	}
	return Held{Fields: slices.Concat(r.Keep, engines())}
}

// Kept returns which parts of a resource's objects Keep, or the cache profile, leaves; nil means all.
func (r *Resource) Kept() *shape.Kept {
	return Holding{Cache: r.Cache, Keep: r.Keep, KeepAt: r.KeepAt}.kept()
}

// code returns the code of a handler or a daemon.
func (h *Handler) code() (Func, DaemonFunc) {
	if h.Daemon == nil {
		return h.Func, nil
	}
	return nil, h.Daemon.Func
}

// engines returns the fields that the engine itself reads.
func engines() []Path { return []Path{{"status", "conditions"}, {"status", "observedGeneration"}} }

// needed returns the parts of objects that handlers read and set: all, if handlers or other readers may read any
// part.
func (op *Operator) needed(r *Resource) Held {
	if cmp.Or(r.Cache, CacheCompact) != CacheCompact || len(r.relations) > 0 || op.shows(r) {
		return Held{}
	}
	paths := []Path{{"status", "conditions"}}
	if r.SetsObservedGeneration() {
		paths = engines()
	}
	for _, h := range r.handlers {
		used, known := h.uses()
		if !known {
			return Held{}
		}
		paths = append(paths, used...)
	}
	out := Held{Annotations: []string{op.Prefix() + "/"}}
	for _, earlier := range op.Earlier() {
		out.Annotations = append(out.Annotations, earlier.Prefix()+"/")
	}
	for _, p := range distinct(paths) {
		switch {
		case p[0] != "metadata":
			out.Fields = append(out.Fields, p)
		case len(p) < 3 && p.Leads(Path{"metadata", "annotations"}): // all annotations
			out.Annotations = nil
		case p[1] == "annotations" && out.Annotations != nil:
			out.Annotations = append(out.Annotations, p[2])
		}
	}
	return out
}

// uses returns the fields of the object that a handler reads, looks at and sets. They are not known if it may use any.
func (h *Handler) uses() (fields []Path, known bool) {
	view := h.View()
	switch {
	case h.ResourceWide:
		return nil, false
	case h.sees != nil:
		return slices.Concat(h.asked(), view.Paths(), h.Known.Sets), true
	case view.Only && h.Level():
		return slices.Concat(view.Beside, h.Known.Sets), true
	}
	return nil, false
}

// shows reports whether handlers see the resource's objects other than as the handled object: as children, as
// related objects, in an index, or because the resource is declared twice. One cache serves all of these, so it
// must hold whole objects.
func (op *Operator) shows(r *Resource) bool {
	indexed := slices.ContainsFunc(op.indexes, func(x *IndexSpec) bool {
		return x.Resource.Objects() == r.Name.Objects() && x.LabelSelector == r.LabelSelector && x.FieldSelector == r.FieldSelector
	})
	return indexed || slices.ContainsFunc(op.resources, func(other *Resource) bool {
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

// checkKept checks that the cache holds the fields that typed code reads.
func (h *Handler) checkKept(c check) {
	if h.Known.Action == "" && !h.ResourceWide { // for functions of a configuration, the action call reports it
		if err := leftOut(typeOf(h.code()), c.Resource.Kept()); err != nil {
			c.fault("", "%w", err)
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"cmp"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl/shape"
)

// Held is what caches need to hold of a resource's objects. The zero Held is all of them.
type Held struct {
	// Fields are the paths outside of metadata. Empty means all.
	Fields []Path
	// Annotations are the keys of those annotations that count, with a slash at the end all keys that begin so. Nil
	// means all.
	Annotations []string
}

// Held returns what caches need to hold of a resource's objects: the fields of Keep, and those that the engine itself reads,
// status.conditions and status.observedGeneration. Without Keep it is the whole object; where it is known which fields handlers
// read and set, it is these fields, status.conditions, the operator's annotations and those that handlers name. The rest of
// metadata is always held.
func (op *Operator) Held(r *Resource) Held {
	if len(r.Keep) == 0 {
		return op.needed(r)
	}
	return Held{Fields: slices.Concat(r.Keep, engines())}
}

// Kept is what Keep leaves of a resource's objects, or the cache's profile; nil for all of them.
func (r *Resource) Kept() *shape.Kept {
	switch {
	case r.Cache == CacheMetadata:
		return &shape.Kept{Metadata: true}
	case len(r.Keep) == 0:
		return nil
	}
	out := &shape.Kept{At: r.KeepAt}
	for _, field := range slices.Concat(r.Keep, engines()) {
		out.Fields = append(out.Fields, field)
	}
	return out
}

// code returns the code of a handler, and that of a daemon.
func (h *Handler) code() (Func, DaemonFunc) {
	if h.Daemon == nil {
		return h.Func, nil
	}
	return nil, h.Daemon.Func
}

// engines are the fields that the engine itself reads.
func engines() []Path { return []Path{{"status", "conditions"}, {"status", "observedGeneration"}} }

// needed is what a resource's handlers look at and set; all, where they may look at any of it, or somebody else may.
func (op *Operator) needed(r *Resource) Held {
	if cmp.Or(r.Cache, CacheCompact) != CacheCompact || len(r.relations) > 0 || op.shows(r) {
		return Held{}
	}
	paths := []Path{{"status", "conditions"}}
	for _, h := range r.handlers {
		view := h.View()
		if !view.Only || h.ResourceWide || !h.Level() {
			return Held{}
		}
		paths = append(append(paths, view.Beside...), h.Sets...)
	}
	out := Held{Annotations: []string{op.Prefix() + "/"}}
	for _, earlier := range op.Earlier() {
		out.Annotations = append(out.Annotations, earlier.Prefix()+"/")
	}
	for _, p := range distinct(paths) {
		switch {
		case p[0] != "metadata":
			out.Fields = append(out.Fields, p)
		case len(p) < 3 && p.Leads(Path{"metadata", "annotations"}): // all of them
			out.Annotations = nil
		case p[1] == "annotations" && out.Annotations != nil:
			out.Annotations = append(out.Annotations, p[2])
		}
	}
	return out
}

// shows reports whether handlers see the resource's objects beside their own ones: as children, as related objects, in
// an index over the same ones, or as those of a resource that is declared twice. One cache serves both then, so it holds
// all of an object.
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

// checkKept checks that the cache holds what typed code reads, and that somebody sees when another one changes what a
// level-triggered handler keeps set.
func (h *Handler) checkKept(c check) {
	kept := c.Resource.Kept()
	if h.Action == "" && !h.ResourceWide { // of functions that a configuration calls, the call is at fault
		if err := leftOut(typeOf(h.code()), kept); err != nil {
			c.fault("", "%w", err)
		}
	}
	if kept == nil || kept.Metadata || !h.Level() || h.Machine != nil { // a machine's book has a check of its own
		return
	}
	for _, path := range h.Sets {
		if lacks, _ := kept.Lacks(path); lacks {
			c.fault("", "it sets %s, which %s leaves out of the cache, so it would not be set again when somebody else changes it: add %[1]s to it", path, kept)
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cause"
)

// View is what a handler looks at. The zero View is the whole essence; see package cause.
type View struct {
	// fields are those that the handler names. Without any it is the essence, unless only what is beside it
	// counts.
	fields []dsl.Path
	// beside is what is looked at, too. A level-triggered handler alone has any, so nothing of it is kept.
	beside []dsl.Path
	only   bool
	name   string
}

// NewView returns the view of these fields, which may lie in status and metadata, too. Without any it is
// the essence.
func NewView(fields ...dsl.Path) View {
	fields = unique(fields)
	return View{fields: fields, name: joined(fields)}
}

// ViewOf returns the view of a handler. One that names fields looks at these, and any other at the essence;
// one that is level-triggered also at what it is known to read of status and of the metadata, or, where its
// code looks at nothing else and names no field, at what it reads alone.
func ViewOf(h *dsl.Handler) View {
	v := NewView(h.Fields...)
	if !h.Level() {
		return v
	}
	v.only = h.Reads.Only && len(v.fields) == 0
	for _, p := range h.Reads.Paths {
		switch {
		case len(p) == 0: // all of the object
			v.only = false
			v.beside = append(v.beside, dsl.Path{"status"}, dsl.Path{"metadata"})
		case v.only || !authoredPath(p):
			v.beside = append(v.beside, p)
		}
	}
	v.beside = unique(v.beside)
	if v.only || len(v.beside) > 0 {
		v.name += "+" + joined(v.beside)
	}
	return v
}

// unique returns the paths in order, each once, without those that others lead to.
func unique(paths []dsl.Path) (out []dsl.Path) {
	paths = slices.Clone(paths)
	slices.SortFunc(paths, func(a, b dsl.Path) int { return slices.Compare(a, b) })
	for _, p := range paths {
		if n := len(out); len(p) > 0 && (n == 0 || !leads(out[n-1], p)) {
			out = append(out, p)
		}
	}
	return out
}

// leads reports whether a path leads to another one, or to what lies around it.
func leads(to, p dsl.Path) bool { return len(to) <= len(p) && to.Covers(p) }

func joined(paths []dsl.Path) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.String()
	}
	return strings.Join(names, ",")
}

// Name tells the view from others: its fields, empty for the essence.
func (v View) Name() string { return v.name }

// Fields are those that the handler names. The slice is not to be changed.
func (v View) Fields() []dsl.Path { return v.fields }

// String tells people what the handler looks at.
func (v View) String() string {
	out := joined(v.fields)
	switch {
	case v.only && len(v.beside) == 0:
		return "nothing that changes"
	case v.only:
		return strings.ReplaceAll(joined(v.beside), ",", ", ")
	case out == "":
		out = "all but the status"
	}
	if len(v.beside) > 0 {
		out += "," + joined(v.beside)
	}
	return strings.ReplaceAll(out, ",", ", ")
}

// essence reports whether all of the essence is part of the view.
func (v View) essence() bool { return len(v.fields) == 0 && !v.only }

// spec reports whether every change of the object's generation is a change of the view.
func (v View) spec() bool {
	return v.essence() || slices.ContainsFunc(v.fields, func(p dsl.Path) bool { return len(p) == 1 && p[0] == "spec" })
}

// generational reports whether what is in the view changes with the generation alone: none of it lies
// in the metadata or in the status.
func (v View) generational() bool {
	return len(v.fields) > 0 && !slices.ContainsFunc(v.fields, func(p dsl.Path) bool { return p[0] == "metadata" || p[0] == "status" })
}

// within reports whether all of the view lies in what is covered: whole, or these fields.
func (v View) within(whole bool, fields []dsl.Path) bool {
	if v.essence() {
		return whole
	}
	for _, p := range v.fields {
		if whole && authoredPath(p) {
			continue
		}
		covered := func(f dsl.Path) bool { return leads(f, p) }
		if !slices.ContainsFunc(fields, covered) {
			return false
		}
	}
	return true
}

// authoredPath reports whether a path leads into the essence.
func authoredPath(p dsl.Path) bool {
	switch p[0] {
	case "status", "apiVersion", "kind":
		return false
	case "metadata":
		return len(p) > 1 && (p[1] == "labels" || p[1] == "annotations")
	}
	return true
}

// Look is an object at one moment, as handlers see it. What is worked out of it is kept, so it must not
// change.
type Look struct {
	object, essence map[string]any
	digests         map[string]string
}

// NewLook returns a look at an object.
func NewLook(object map[string]any) *Look {
	return &Look{object: object, essence: cause.Essence(object), digests: map[string]string{}}
}

// Digest returns the digest of a view. That of a view of which nothing is there is that of nil.
func (l *Look) Digest(v View) string {
	digest, known := l.digests[v.name]
	if !known {
		digest = cause.Digest(l.value(v))
		l.digests[v.name] = digest
	}
	return digest
}

// Seen reports whether there is anything of the view to be seen: any of the fields that the handler names.
// Where it names none there always is.
func (l *Look) Seen(v View) bool {
	return len(v.fields) == 0 || slices.ContainsFunc(v.fields, func(p dsl.Path) bool { return l.at(p) != nil })
}

// value is what the digest is of: the essence, the value of the one field, or those of several, in order.
func (l *Look) value(v View) any {
	switch {
	case v.essence() && len(v.beside) == 0:
		return l.essence
	case len(v.fields) == 1 && len(v.beside) == 0:
		return l.at(v.fields[0])
	}
	var values []any
	some := v.essence() || v.only
	if v.essence() {
		values = append(values, l.essence)
	}
	for _, p := range slices.Concat(v.fields, v.beside) {
		value := l.at(p)
		values = append(values, value)
		some = some || value != nil
	}
	if !some {
		return nil
	}
	return values
}

// at returns what a path leads to, nil when there is nothing.
func (l *Look) at(p dsl.Path) any {
	value, _ := p.In(l.around(p))
	return value
}

// around returns the tree in which a path is to be followed.
func (l *Look) around(p dsl.Path) map[string]any {
	if authoredPath(p) {
		return l.essence
	}
	if len(p) > 1 || p[0] != "metadata" {
		return l.object
	}
	metadata := maps.Clone(l.metadata())
	for _, moving := range []string{"managedFields", "resourceVersion", "generation", "labels", "annotations"} {
		delete(metadata, moving)
	}
	own, _ := l.essence["metadata"].(map[string]any)
	maps.Copy(metadata, own)
	return map[string]any{"metadata": metadata}
}

func (l *Look) metadata() map[string]any {
	metadata, _ := l.object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	return metadata
}

// Kept returns what is kept of the object for a handler that wants to see what was: the essence, or the
// fields of the view. It shares values with the object.
func (l *Look) Kept(v View) map[string]any {
	if v.essence() {
		return l.essence
	}
	out := map[string]any{}
	for _, p := range v.fields {
		out = cause.Patched(out, cause.Project(l.around(p), []dsl.Path{p}))
	}
	return out
}

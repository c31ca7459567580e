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
	paths []dsl.Path
	name  string
}

// NewView returns the view of these fields, which may lie in status and metadata, too. Without any it is
// the essence.
func NewView(paths ...dsl.Path) View {
	paths = slices.DeleteFunc(slices.Clone(paths), func(p dsl.Path) bool { return len(p) == 0 })
	slices.SortFunc(paths, func(a, b dsl.Path) int { return slices.Compare(a, b) })
	paths = slices.CompactFunc(paths, func(a, b dsl.Path) bool { return slices.Equal(a, b) })
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.String()
	}
	return View{paths: paths, name: strings.Join(names, ",")}
}

// Name tells the view from others: its paths, empty for the essence.
func (v View) Name() string { return v.name }

// Paths are the fields, none for the essence. The slice is not to be changed.
func (v View) Paths() []dsl.Path { return v.paths }

// spec reports whether every change of the object's generation is a change of the view.
func (v View) spec() bool {
	return len(v.paths) == 0 || slices.ContainsFunc(v.paths, func(p dsl.Path) bool { return len(p) == 1 && p[0] == "spec" })
}

// generational reports whether what is in the view changes with the generation alone: none of it lies
// in the metadata or in the status.
func (v View) generational() bool {
	return len(v.paths) > 0 && !slices.ContainsFunc(v.paths, func(p dsl.Path) bool { return p[0] == "metadata" || p[0] == "status" })
}

// within reports whether all of the view lies in what is covered: whole, or these fields.
func (v View) within(whole bool, fields []dsl.Path) bool {
	if len(v.paths) == 0 {
		return whole
	}
	for _, p := range v.paths {
		if whole && authoredPath(p) {
			continue
		}
		covered := func(f dsl.Path) bool { return len(f) <= len(p) && f.Covers(p) }
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

// Seen reports whether there is anything of the view to be seen. Of the essence there always is.
func (l *Look) Seen(v View) bool { return len(v.paths) == 0 || l.Digest(v) != cause.Digest(nil) }

// value is what the digest is of: the essence, the value of the one field, or those of several, in order.
func (l *Look) value(v View) any {
	switch len(v.paths) {
	case 0:
		return l.essence
	case 1:
		return l.at(v.paths[0])
	}
	values, some := make([]any, len(v.paths)), false
	for i, p := range v.paths {
		values[i] = l.at(p)
		some = some || values[i] != nil
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
	if len(v.paths) == 0 {
		return l.essence
	}
	out := map[string]any{}
	for _, p := range v.paths {
		out = cause.Patched(out, cause.Project(l.around(p), []dsl.Path{p}))
	}
	return out
}

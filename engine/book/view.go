// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package book

import (
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// View is what a handler looks at, with a name. The zero View is the whole essence; see [Essence]. What a
// level-triggered handler looks at beside fields and essence is never kept: nothing is kept for such a one.
type View struct {
	dsl.View
	name string
	own  Own
	// status: it reaches into the status.
	status bool
}

// Own is what an operator itself puts on objects: that is in no view of its handlers.
type Own struct {
	// Annotations are keys.
	Annotations []string
	Finalizer   string
	// Key is that of the digests of objects that are Secrets; nil for others.
	Key *Key
}

// NewView returns a view by the name that tells it from others: its fields, empty for the essence.
func NewView(v dsl.View, own Own) View {
	name := joined(v.Fields)
	switch {
	case v.Only:
		name = "=" + joined(v.Beside)
	case len(v.Beside) > 0:
		name += "+" + joined(v.Beside)
	}
	if len(v.Parents) > 0 {
		name += "?" + joined(v.Parents)
	}
	if len(v.Ignored) > 0 {
		name += leavesOut + joined(v.Ignored)
	}
	inStatus := func(p dsl.Path) bool { return p[0] == "status" }
	return View{v, name, own, slices.ContainsFunc(slices.Concat(v.Fields, v.Beside, v.Parents), inStatus)}
}

// leavesOut stands, in the name of a view, before what is ignored.
const leavesOut = "!"

// lacks reports whether what was kept for a view of a name may lack something of this one, which it ignored.
func (v View) lacks(former string) bool {
	_, ignored, some := strings.Cut(former, leavesOut)
	now := strings.Split(joined(v.Ignored), ",")
	return some && slices.ContainsFunc(strings.Split(ignored, ","), func(path string) bool { return !slices.Contains(now, path) })
}

func joined(paths []dsl.Path) string {
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.String()
	}
	return strings.Join(names, ",")
}

// Name tells the view from others.
func (v View) Name() string { return v.name }

// spec reports whether every change of the object's generation is a change of the view.
func (v View) spec() bool {
	return !slices.ContainsFunc(v.Ignored, func(p dsl.Path) bool { return p[0] != "metadata" && p[0] != "status" }) && (v.Essence() || slices.ContainsFunc(v.Fields, func(p dsl.Path) bool { return len(p) == 1 && p[0] == "spec" }))
}

// generational reports whether what is in the view changes with the generation alone: none of it lies
// in the metadata or in the status.
func (v View) generational() bool {
	return len(v.Fields) > 0 && !slices.ContainsFunc(v.Fields, func(p dsl.Path) bool { return p[0] == "metadata" || p[0] == "status" })
}

// within reports whether all of the view lies in what is covered: whole, or these fields.
func (v View) within(whole bool, fields []dsl.Path) bool {
	if v.Essence() {
		return whole
	}
	return !slices.ContainsFunc(v.Fields, func(p dsl.Path) bool {
		covered := whole && p.Authored() || slices.ContainsFunc(fields, func(f dsl.Path) bool { return f.Leads(p) })
		return !covered
	})
}

// Look is an object at one moment, as handlers see it. What is worked out of it is kept, so it must not
// change.
type Look struct {
	object, essence map[string]any
	digests         []digest // few: most handlers look at the same
}

// digest is that of a view. Status: the view reaches into the status.
type digest struct {
	view, text string
	status     bool
}

// NewLook returns a look at an object.
func NewLook(object map[string]any) *Look {
	return &Look{object: object, essence: Essence(object)}
}

// With returns a look at the object as a merge patch leaves it. What the patch does not reach is not worked out again.
func (l *Look) With(object, patch map[string]any) *Look {
	if _, status := patch["status"]; !status || len(patch) > 1 {
		return NewLook(object)
	}
	below := func(d digest) bool { return d.status }
	return &Look{object: object, essence: l.essence, digests: slices.DeleteFunc(slices.Clone(l.digests), below)}
}

// weight is about how many bytes of memory the object takes; see [book.Weight].
func (l *Look) weight() int { return WeightOf(l.object) }

// Digest returns the digest of a view. That of fields of which none is there is that of nil.
func (l *Look) Digest(v View) string {
	for _, d := range l.digests {
		if d.view == v.name {
			return d.text
		}
	}
	text := v.digest(l.value(v))
	l.digests = append(l.digests, digest{v.name, text, v.status})
	return text
}

// digest is that of what the view shows.
func (v View) digest(value any) string {
	if v.own.Key != nil {
		return v.own.Key.digest(value)
	}
	return Digest(value)
}

// former is the digest of a view for releases to which the operator's own finalizer was a part of it, and of a Secret for those that
// had no key.
func (l *Look) former(v View) string {
	if v.own.Key != nil {
		return Digest(l.value(v))
	}
	if !slices.ContainsFunc(v.Paths(), dsl.Path{"metadata", "finalizers"}.Covers) {
		return l.Digest(v)
	}
	v.own.Finalizer = ""
	return Digest(l.value(v))
}

// Seen reports whether there is anything of the view to be seen: any of the fields that the handler names.
// Where it names none there always is.
func (l *Look) Seen(v View) bool {
	return len(v.Fields) == 0 || slices.ContainsFunc(v.Fields, func(p dsl.Path) bool { return l.at(v, p) != nil })
}

// value is what the digest is of: the essence, the value of the one field, or those of several, in order.
func (l *Look) value(v View) any {
	bare := len(v.Beside)+len(v.Parents) == 0
	switch {
	case v.Essence() && bare:
		return v.spare(nil, l.essence)
	case len(v.Fields) == 1 && bare:
		return l.at(v, v.Fields[0])
	}
	var values []any
	some := v.Essence() || v.Only || !bare
	if v.Essence() {
		values = append(values, v.spare(nil, l.essence))
	}
	for _, p := range v.Paths() {
		value := l.at(v, p)
		values = append(values, value)
		some = some || value != nil
	}
	if !some {
		return nil
	}
	if ends := l.ends(v); slices.Contains(ends, true) {
		values = append(values, ends)
	}
	return values
}

// ends tells what expressions find out of paths that lead to no value: for each path whether there is null
// rather than nothing, and for each parent whether there is none.
func (l *Look) ends(v View) (out []bool) {
	for _, p := range v.Beside {
		value, found := p.In(l.around(v, p))
		out = append(out, found && value == nil)
	}
	for _, p := range v.Parents {
		value, _ := p.In(l.object)
		_, parent := value.(map[string]any)
		out = append(out, !parent)
	}
	return out
}

// at returns what a path leads to, nil when there is nothing.
func (l *Look) at(v View, p dsl.Path) any {
	value, _ := p.In(l.around(v, p))
	if tree, is := value.(map[string]any); is && len(v.Ignored) > 0 {
		if tree = v.spare(p, tree); len(tree) > 0 || len(value.(map[string]any)) == 0 {
			return tree
		}
		return nil
	}
	return value
}

// spare returns a tree that lies under a path without what the view ignores. Nothing is changed.
func (v View) spare(at dsl.Path, tree map[string]any) map[string]any {
	for _, p := range v.Ignored {
		if at.Leads(p) && len(p) > len(at) {
			tree = without(tree, p[len(at):])
		}
	}
	return tree
}

// without returns a tree without what a path leads to, and without maps that are empty then.
func without(tree map[string]any, p dsl.Path) map[string]any {
	below, found := tree[p[0]]
	deeper, is := below.(map[string]any)
	if !found || len(p) > 1 && !is {
		return tree
	}
	if len(p) > 1 {
		if deeper = without(deeper, p[1:]); len(deeper) > 0 || len(below.(map[string]any)) == 0 {
			out := maps.Clone(tree)
			out[p[0]] = deeper
			return out
		}
	}
	out := maps.Clone(tree)
	delete(out, p[0])
	return out
}

// around returns the tree in which a path is to be followed. An annotation by its name is followed in the object
// itself, be it bookkeeping or not.
func (l *Look) around(v View, p dsl.Path) map[string]any {
	switch {
	case len(p) > 2 && p[0] == "metadata" && p[1] == "annotations":
		if slices.Contains(v.own.Annotations, p[2]) {
			return nil
		}
		return l.object
	case p.Authored():
		return l.essence
	case p[0] != "metadata", len(p) > 1 && p[1] != "finalizers":
		return l.object
	}
	metadata := maps.Clone(l.metadata())
	for _, moving := range []string{"managedFields", "resourceVersion", "generation", "labels", "annotations"} {
		delete(metadata, moving)
	}
	own, _ := l.essence["metadata"].(map[string]any)
	maps.Copy(metadata, own)
	v.own.release(metadata)
	return map[string]any{"metadata": metadata}
}

// release takes the operator's own finalizer from an object's metadata.
func (o Own) release(metadata map[string]any) {
	list, _ := metadata["finalizers"].([]any)
	others := slices.DeleteFunc(slices.Clone(list), func(f any) bool { return f == o.Finalizer })
	switch {
	case len(others) == len(list):
	case len(others) == 0:
		delete(metadata, "finalizers")
	default:
		metadata["finalizers"] = others
	}
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
	if v.Essence() {
		return v.spare(nil, l.essence)
	}
	out := map[string]any{}
	for _, p := range v.Fields {
		out = joint(out, Project(l.around(v, p), []dsl.Path{p}))
	}
	return v.spare(nil, out)
}

// joint returns two trees as one, in which the second counts more; neither is changed.
func joint(tree, over map[string]any) map[string]any {
	out := maps.Clone(tree)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range over {
		below, is := out[key].(map[string]any)
		if deeper, both := value.(map[string]any); is && both {
			value = joint(below, deeper)
		}
		out[key] = value
	}
	return out
}

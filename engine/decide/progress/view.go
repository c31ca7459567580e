// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"maps"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// View is a handler's view, with a name. The zero View is the whole essence; see [Essence]. A level-triggered
// handler may look at more than fields and essence; for such a handler the engine keeps nothing.
type View struct {
	dsl.View
	name string
	own  Own
	// status: the view includes fields of the status.
	status bool
}

// Own are the operator's own marks on objects. They are in no handler's view.
type Own struct {
	// Annotations are the keys of annotations.
	Annotations []string
	Finalizer   string
	// Key is the key for digests of objects that are Secrets; nil for others.
	Key *Key
}

// NewView returns a view. Its name is made of its fields, and is empty for the essence.
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
	if len(v.Outcomes) > 0 {
		name += "@" + joined(v.Outcomes)
	}
	if len(v.Ignored) > 0 {
		name += leavesOut + joined(v.Ignored)
	}
	inStatus := func(p dsl.Path) bool { return p[0] == "status" }
	return View{v, name, own, slices.ContainsFunc(slices.Concat(v.Fields, v.Beside, v.Parents), inStatus)}
}

// leavesOut precedes the ignored paths in the name of a view.
const leavesOut = "!"

// lacks reports whether the kept state for a view of a former name may lack a part of this one that was ignored
// then.
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

// Name identifies the view.
func (v View) Name() string { return v.name }

// spec reports whether every change of the object's generation changes the view.
func (v View) spec() bool {
	return !slices.ContainsFunc(v.Ignored, func(p dsl.Path) bool { return p[0] != "metadata" && p[0] != "status" }) && (v.Essence() || slices.ContainsFunc(v.Fields, func(p dsl.Path) bool { return len(p) == 1 && p[0] == "spec" }))
}

// generational reports whether every change of the view changes the generation: the view has no part of the
// metadata or of the status.
func (v View) generational() bool {
	return len(v.Fields) > 0 && !slices.ContainsFunc(v.Fields, func(p dsl.Path) bool { return p[0] == "metadata" || p[0] == "status" })
}

// within reports whether the whole view is covered by the essence, if whole is set, or by these fields.
func (v View) within(whole bool, fields []dsl.Path) bool {
	if v.Essence() {
		return whole
	}
	return !slices.ContainsFunc(v.Fields, func(p dsl.Path) bool {
		covered := whole && p.Authored() || slices.ContainsFunc(fields, func(f dsl.Path) bool { return f.Leads(p) })
		return !covered
	})
}

// Snapshot is an object at one moment, as handlers see it. It caches results, so the object must not change.
type Snapshot struct {
	object, essence map[string]any
	// outcomes are the handlers' outcomes that others read.
	outcomes dsl.Outcomes
	digests  []digest // few: most handlers have the same view
}

// digest is the digest of a view. Status: the view includes fields of the status. Outcomes: it includes outcomes.
type digest struct {
	view, text       string
	status, outcomes bool
}

// NewSnapshot returns a snapshot of an object.
func NewSnapshot(object map[string]any) *Snapshot {
	return &Snapshot{object: object, essence: Essence(object)}
}

// With returns a snapshot of the object after a merge patch. It reuses the digests that the patch does not affect.
func (l *Snapshot) With(object, patch map[string]any) *Snapshot {
	if _, status := patch["status"]; !status || len(patch) > 1 {
		return l.At(object)
	}
	below := func(d digest) bool { return d.status }
	return &Snapshot{object: object, essence: l.essence, outcomes: l.outcomes, digests: slices.DeleteFunc(slices.Clone(l.digests), below)}
}

// At returns a snapshot of another state of the object, with the same outcomes.
func (l *Snapshot) At(object map[string]any) *Snapshot {
	out := NewSnapshot(object)
	out.outcomes = l.outcomes
	return out
}

// WithOutcomes returns a snapshot of the same object with other outcomes, which must not change.
func (l *Snapshot) WithOutcomes(outcomes dsl.Outcomes) *Snapshot {
	reads := func(d digest) bool { return d.outcomes }
	return &Snapshot{object: l.object, essence: l.essence, outcomes: outcomes, digests: slices.DeleteFunc(slices.Clone(l.digests), reads)}
}

// Outcomes returns the handlers' outcomes that others read. They must not be changed.
func (l *Snapshot) Outcomes() dsl.Outcomes { return l.outcomes }

// OutcomesIn returns the outcomes that a view includes.
func (l *Snapshot) OutcomesIn(v View) (out []any) {
	for _, p := range v.Outcomes {
		out = append(out, l.outcomes.At(p))
	}
	return out
}

// weight estimates the memory of the object in bytes; see [Weight].
func (l *Snapshot) weight() int { return WeightOf(l.object) }

// Digest returns the digest of a view. If none of its fields exists, it is that of nil.
func (l *Snapshot) Digest(v View) string {
	for _, d := range l.digests {
		if d.view == v.name {
			return d.text
		}
	}
	value, heard := l.value(v), l.OutcomesIn(v)
	if heard != nil {
		value = []any{value, heard}
	}
	text := v.digest(value)
	l.digests = append(l.digests, digest{v.name, text, v.status, heard != nil})
	return text
}

// digest returns the digest of a view's value.
func (v View) digest(value any) string {
	if v.own.Key != nil {
		return v.own.Key.digest(value)
	}
	return Digest(value)
}

// Exists reports whether some of the view exists: one of the handler's fields. A handler without fields always sees
// something.
func (l *Snapshot) Exists(v View) bool {
	return len(v.Fields) == 0 || v.Always || slices.ContainsFunc(v.Fields, func(p dsl.Path) bool { return l.at(v, p) != nil })
}

// value returns the input of the digest: the essence, the value of a single field, or the values of several, in
// order.
func (l *Snapshot) value(v View) any {
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

// ends returns the facts that expressions can see about paths without a value: for each path, whether it is null or
// missing, and for each parent, whether it is missing.
func (l *Snapshot) ends(v View) (out []bool) {
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

// at returns the value at a path, or nil.
func (l *Snapshot) at(v View, p dsl.Path) any {
	value, _ := p.In(l.around(v, p))
	if tree, is := value.(map[string]any); is && (len(v.Ignored) > 0 || p[0] == "metadata") {
		if tree = v.spare(p, tree); len(tree) > 0 || len(value.(map[string]any)) == 0 {
			return tree
		}
		return nil
	}
	return value
}

// spare returns the tree under a path without the paths that the view ignores, and without the operator's own annotations.
// Their keys alone do not show that they are bookkeeping. It changes nothing.
func (v View) spare(at dsl.Path, tree map[string]any) map[string]any {
	for _, p := range v.Ignored {
		if at.Leads(p) && len(p) > len(at) {
			tree = without(tree, p[len(at):])
		}
	}
	for _, key := range v.own.Annotations {
		p := dsl.Path{"metadata", "annotations", key}
		if !at.Leads(p) || len(at) == len(p) {
			continue
		}
		if _, found := p[len(at):].In(tree); found {
			tree = without(tree, p[len(at):])
		}
	}
	return tree
}

// without returns a tree without the value at a path, and without maps that are then empty.
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

// around returns the tree in which to follow a path. The path of a single annotation is followed in the object
// itself, so that bookkeeping annotations are found, too.
func (l *Snapshot) around(v View, p dsl.Path) map[string]any {
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

// release removes the operator's own finalizer from an object's metadata.
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

func (l *Snapshot) metadata() map[string]any {
	metadata, _ := l.object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	return metadata
}

// Kept returns the part of the object that is kept for a handler that uses the old state: the essence, or the fields of
// the view. It shares values with the object.
func (l *Snapshot) Kept(v View) map[string]any {
	if v.Essence() {
		return v.spare(nil, l.essence)
	}
	out := map[string]any{}
	for _, p := range v.Fields {
		out = joint(out, project(l.around(v, p), []dsl.Path{p}))
	}
	return v.spare(nil, out)
}

// joint merges two trees; the second takes precedence. Neither is changed.
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

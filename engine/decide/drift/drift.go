// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package drift finds how an object differs from its template: fields that are missing or different, and fields
// that people have added. It is pure.
//
// It recognises how server-side apply merges values by the paths of managedFields, and how the server rewrites
// values by the built-in kinds.
package drift

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Drift is how a child differed from its template, and why, as far as that is known.
type Drift struct {
	// Updated are the paths at which the template has changed since it was last applied.
	Updated []string
	// Fields are the paths that somebody had changed, Added the paths that were added, Managers the field managers
	// that did so.
	Fields, Added, Managers []string
}

// String describes it for people, as in "spec.ports changed by kubectl-patch"; empty if nothing is known.
func (d Drift) String() string {
	var parts []string
	for _, part := range []struct {
		paths []string
		what  string
	}{{d.Fields, " changed"}, {d.Added, " added"}} {
		if len(part.paths) > 0 {
			parts = append(parts, some(part.paths)+part.what)
		}
	}
	out := strings.Join(parts, ", ")
	if len(parts) > 0 && len(d.Managers) > 0 {
		out += " by " + strings.Join(d.Managers, ", ")
	}
	switch {
	case len(d.Updated) == 0:
		return out
	case out == "":
		return some(d.Updated)
	}
	return some(d.Updated) + "; put back " + out
}

// some lists the first few paths.
func some(paths []string) string {
	const most = 3
	out := strings.Join(paths[:min(len(paths), most)], ", ")
	if len(paths) > most {
		out += " and more"
	}
	return out
}

// Question has the inputs for finding out who changed a child.
type Question struct {
	// Desired is the template, Live the child as the cache has it.
	Desired, Live *unstructured.Unstructured
	// More are the fields that people have added.
	More Added
	// Managed are the managedFields of the child; nil if it was not read.
	Managed []metav1.ManagedFieldsEntry
	// Manager is the operator's own field manager.
	Manager string
	// Same: the desired template is the one recorded in the child.
	Same bool
}

// Of finds the changes by others in a child. Server-side apply removes a field from its manager when somebody else
// changes it. So the operator's present fields have the values that it applied last. If the template differs from these,
// the template has changed.
func Of(q Question) Drift {
	d := Drift{Fields: slices.Clone(q.More.Whole), Managers: slices.Clone(q.More.Managers)}
	paths := slices.DeleteFunc(q.differing(), func(path dsl.Path) bool { return !q.foreign(path) })
	for _, path := range paths {
		d.Fields = append(d.Fields, path.String())
	}
	slices.Sort(d.Fields)
	d.Fields = slices.Compact(d.Fields)
	for _, path := range q.More.Paths {
		if !slices.ContainsFunc(d.Fields, func(field string) bool { return strings.HasPrefix(path, field) }) {
			d.Added = append(d.Added, path)
		}
	}
	for _, entry := range q.Managed {
		if entry.Manager == q.Manager || entry.FieldsV1 == nil || slices.Contains(d.Managers, entry.Manager) {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if slices.ContainsFunc(paths, func(path dsl.Path) bool { return manages(fields, path) }) {
			d.Managers = append(d.Managers, entry.Manager)
		}
	}
	return d
}

func (q Question) differing() []dsl.Path {
	return knowing(q.Desired.GroupVersionKind().GroupKind()).differing(nil, "", q.Desired.Object, q.Live.Object, false)
}

// Touched reports whether a person, as far as the cache knows, manages some field that differs.
func (q Question) Touched() bool {
	hands := q.Live.GetManagedFields()
	return len(hands) > 0 && slices.ContainsFunc(q.differing(), func(path dsl.Path) bool {
		return q.has(hands, path, false, func(string) bool { return true })
	})
}

// foreign reports whether somebody else has changed a path that differs.
func (q Question) foreign(path dsl.Path) bool {
	if q.Managed == nil {
		return q.Same // nothing else is known
	}
	own := func(manager string) bool { return manager == q.Manager }
	if q.has(q.Managed, path, true, own) {
		return false
	}
	return q.Same || q.has(q.Managed, path, false, func(manager string) bool { return manager != q.Manager })
}

// has reports whether managers have all, or some, of the desired value at a path.
func (q Question) has(entries []metav1.ManagedFieldsEntry, path dsl.Path, all bool, of func(manager string) bool) bool {
	fields := fieldpath.NewSet()
	for _, e := range entries {
		if of(e.Manager) {
			fields = fields.Union(FieldsOf(e))
		}
	}
	value, _ := path.In(q.Desired.Object)
	for _, key := range slices.Backward(path) {
		value = map[string]any{key: value}
	}
	return within(fields, value, all)
}

// within reports whether managed fields have all, or some, of a value.
func within(fields *fieldpath.Set, value any, all bool) bool {
	has := func(each fieldpath.PathElement, value any) bool {
		inner, deeper := fields.Children.Get(each)
		if !deeper {
			return fields.Members.Has(each) // it is managed as a whole
		}
		return within(inner, value, all)
	}
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if inner != nil && has(fieldpath.FieldNameElement(key), inner) != all {
				return !all
			}
		}
		return all
	case []any:
		for _, item := range v {
			found := false
			for each := range elements(fields) {
				found = found || isItem(each, item) && has(each, item)
			}
			if found != all {
				return !all
			}
		}
		return all
	}
	return true
}

// manages reports whether a field, or something in it, is in the fields of a manager.
func manages(fields map[string]any, path dsl.Path) bool {
	for _, key := range path {
		inner, found := fields["f:"+key].(map[string]any)
		if !found {
			return false
		}
		if fields = inner; len(fields) == 0 {
			return true // it is managed as a whole
		}
	}
	return true
}

// differing returns the paths at which live differs from the desired value, sorted.
func (k knowledge) differing(at dsl.Path, key string, want, has map[string]any, quantities bool) []dsl.Path {
	var out []dsl.Path
	for _, field := range slices.Sorted(maps.Keys(want)) {
		if has[field] == nil && k.leavesOut(key, field, want[field]) {
			continue
		}
		amount := quantities || k.isQuantity(key, field)
		if k.covers(field, want[field], has[field], amount) {
			continue
		}
		path := append(slices.Clip(at), field)
		inner, isMap := want[field].(map[string]any)
		other, both := has[field].(map[string]any)
		if isMap && both {
			out = append(out, k.differing(path, field, inner, other, amount)...)
		} else {
			out = append(out, path)
		}
	}
	return out
}

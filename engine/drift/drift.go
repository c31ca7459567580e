// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package drift tells how an object differs from what its template says: what of that is missing or another, and what
// people's hands have added. It is pure.
//
// What server-side apply merges it knows by the paths of managedFields; what the server writes in another way than it was
// sent, by the kinds of Kubernetes.
package drift

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Drift is what somebody had changed of a child, as far as it can be told.
type Drift struct {
	// Fields are the paths of what was changed, Added those of what was set besides, Managers the field managers that did
	// so.
	Fields, Added, Managers []string
}

// String says it to people, as in "spec.ports changed by kubectl-patch"; empty when nothing is known.
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
	return out
}

// some lists the first few of paths.
func some(paths []string) string {
	const most = 3
	out := strings.Join(paths[:min(len(paths), most)], ", ")
	if len(paths) > most {
		out += " and more"
	}
	return out
}

// Of tells how live differs from what is desired, what hands have added to it, and who did so. Entries are what others
// manage, empty where that is not known. The operator's own are those of its manager.
func Of(desired, live *unstructured.Unstructured, more Added, entries []metav1.ManagedFieldsEntry, own string) Drift {
	paths := knowing(desired.GroupVersionKind().GroupKind()).differing(nil, "", desired.Object, live.Object, false)
	d := Drift{Fields: slices.Clone(more.Whole), Managers: slices.Clone(more.Managers)}
	for _, path := range paths {
		d.Fields = append(d.Fields, path.String())
	}
	slices.Sort(d.Fields)
	d.Fields = slices.Compact(d.Fields)
	for _, path := range more.Paths {
		if !slices.ContainsFunc(d.Fields, func(field string) bool { return strings.HasPrefix(path, field) }) {
			d.Added = append(d.Added, path)
		}
	}
	for _, entry := range entries {
		if entry.Manager == own || entry.FieldsV1 == nil || slices.Contains(d.Managers, entry.Manager) {
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

// differing returns the paths at which live does not have what is desired, sorted.
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

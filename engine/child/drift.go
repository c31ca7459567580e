// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Deed is what was done to a child, or to another object.
type Deed string

// The deeds. The empty one is nothing.
const (
	// Created: it was not there.
	Created Deed = "created"
	// Updated: something else was desired than when it was last applied.
	Updated Deed = "updated"
	// PutBack: the same was desired, and somebody had changed it.
	PutBack Deed = "put back"
	// Adopted: it was nobody's.
	Adopted Deed = "adopted"
	// GivenBack: somebody else made it at the same time, and it was left to them.
	GivenBack Deed = "given back"
	// Deleted: it was deleted. Released: it was cut loose from its owner.
	Deleted  Deed = "deleted"
	Released Deed = "released"
	// Applied, Patched: an object that is no child was written.
	Applied Deed = "applied"
	Patched Deed = "patched"
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

// driftOf tells how a child differs from what is desired, what hands have added to it, and who did so. The cache does
// not have what others manage; nobody is named for what it was read for, when it could not be.
func (a Applier) driftOf(desired, live, now *unstructured.Unstructured, more added) Drift {
	k := knowing(desired.GroupVersionKind().GroupKind())
	paths := k.differing(nil, "", desired.Object, live.Object, false)
	d := Drift{Fields: slices.Clone(more.whole), Managers: slices.Clone(more.managers)}
	for _, path := range paths {
		d.Fields = append(d.Fields, path.String())
	}
	slices.Sort(d.Fields)
	d.Fields = slices.Compact(d.Fields)
	for _, path := range more.paths {
		if !slices.ContainsFunc(d.Fields, func(field string) bool { return strings.HasPrefix(path, field) }) {
			d.Added = append(d.Added, path)
		}
	}
	if now == nil {
		return d
	}
	for _, entry := range now.GetManagedFields() {
		if entry.Manager == a.Manager || entry.FieldsV1 == nil || slices.Contains(d.Managers, entry.Manager) {
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

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

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
	// Fields are the paths of what was changed, Managers the field managers that changed them.
	Fields, Managers []string
}

// String says it to people, as in "spec.ports changed by kubectl-patch"; empty when nothing is known.
func (d Drift) String() string {
	if len(d.Fields) == 0 {
		return ""
	}
	const most = 3
	out := strings.Join(d.Fields[:min(len(d.Fields), most)], ", ")
	if len(d.Fields) > most {
		out += " and more"
	}
	out += " changed"
	if len(d.Managers) > 0 {
		out += " by " + strings.Join(d.Managers, ", ")
	}
	return out
}

// driftOf tells how a child differs from what is desired, and who changed that. The cache does not have
// what others manage, so the child is read; when that fails, nobody is named.
func (a Applier) driftOf(ctx context.Context, c dynamic.ResourceInterface, desired, live *unstructured.Unstructured) Drift {
	k := knowing(desired.GroupVersionKind().GroupKind())
	paths := k.differing(nil, "", desired.Object, live.Object, false)
	var d Drift
	for _, path := range paths {
		d.Fields = append(d.Fields, path.String())
	}
	now, err := c.Get(ctx, desired.GetName(), metav1.GetOptions{})
	if err != nil || now.GetUID() != live.GetUID() {
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
			continue
		}
		out = append(out, path)
	}
	return out
}

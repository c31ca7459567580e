// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// noteScale gives next its managedFields after a write of its scale other than apply. A real server takes the entries of the replicas
// out of those of the object for this, and does not find them again if they are of an update: an unchanged value stays with its
// managers in entries of their own, without a time. A value without a manager does not get one.
func (m managing) noteScale(t *table, r Request, old, next *unstructured.Unstructured) {
	replicas := fieldpath.NewSet(fieldPath(t.scale.spec))
	changed, owned := t.replicas(old) != t.replicas(next), false
	was, _ := old.Object["metadata"].(map[string]any)
	var now []any
	for _, e := range distinct(was) {
		entry, _ := e.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		rest := without(fields, replicas)
		if sameMap(rest, fields) || !changed && isApplied(e) {
			now = append(now, e)
			owned = owned || !sameMap(rest, fields)
			continue
		}
		owned = true
		if len(rest) > 0 {
			now = append(now, withFields(entry, rest))
		}
		if !changed {
			own := withFields(entry, with(nil, replicas))
			delete(own, "time")
			now = append(now, own)
		}
	}
	if owned && changed && t.replicas(next) != 0 { // a Scale of 0 is encoded without the field
		own := m.entry(r, metav1.ManagedFieldsOperationUpdate)
		delete(own, "time")
		own["fieldsV1"] = with(nil, replicas)
		now = append(now, own)
	}
	slices.SortFunc(now, byManager)
	metadata, _ := next.Object["metadata"].(map[string]any)
	if delete(metadata, "managedFields"); len(now) > 0 {
		metadata["managedFields"] = now
	}
}

// fieldPath returns the path of a field by the names on its way.
func fieldPath(names []string) (out fieldpath.Path) {
	for _, name := range names {
		out = append(out, fieldpath.PathElement{FieldName: &name})
	}
	return out
}

// withFields returns an entry with other fields.
func withFields(entry, fields map[string]any) map[string]any {
	out := maps.Clone(entry)
	out["fieldsV1"] = fields
	return out
}

// distinct returns the entries of an object's metadata without those that have a later one of the same manager. Two of one manager
// come from a scale: one of them has no time. A real server forgets the first when it reads them.
func distinct(metadata map[string]any) []any {
	all, _ := metadata["managedFields"].([]any)
	if !slices.ContainsFunc(all, isTimeless) {
		return all
	}
	var out []any
	for i, e := range all {
		again := func(later any) bool {
			a, b := e.(map[string]any), later.(map[string]any)
			return sameManager(a, b) && a["apiVersion"] == b["apiVersion"]
		}
		if !slices.ContainsFunc(all[i+1:], again) {
			out = append(out, e)
		}
	}
	return out
}

func isTimeless(entry any) bool { return entry.(map[string]any)["time"] == nil }

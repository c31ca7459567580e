// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Applies reports whether a field manager owns some of an object by server-side apply.
func Applies(live *unstructured.Unstructured, manager string) bool {
	return slices.ContainsFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return appliedBy(e, manager) })
}

// AppliedVersion returns the apiVersion in which a field manager has applied an object; empty if it has not.
func AppliedVersion(live *unstructured.Unstructured, manager string) string {
	for _, e := range live.GetManagedFields() {
		if appliedBy(e, manager) {
			return e.APIVersion
		}
	}
	return ""
}

func appliedBy(e metav1.ManagedFieldsEntry, manager string) bool {
	return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
}

// Applied returns the part of an object that a field manager owns by server-side apply, without the object's identity.
// It is nil if the manager owns nothing.
func Applied(live *unstructured.Unstructured, manager string) map[string]any {
	for _, e := range live.GetManagedFields() {
		if appliedBy(e, manager) {
			out, _ := owned(FieldsOf(e), live.Object).(map[string]any)
			return out
		}
	}
	return nil
}

// owned returns the part of a value that is in a set of fields.
func owned(fields *fieldpath.Set, value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for each := range elements(fields) {
			if each.FieldName == nil {
				continue
			}
			if has, found := value[*each.FieldName]; found {
				out[*each.FieldName] = ownedAt(fields, each, has)
			}
		}
		return out
	case []any:
		out, all := []any{}, slices.Collect(elements(fields)) // the iterator of a set cannot be left early
		for _, entry := range value {
			if at := slices.IndexFunc(all, func(each fieldpath.PathElement) bool { return isItem(each, entry) }); at >= 0 {
				out = append(out, ownedAt(fields, all[at], entry))
			}
		}
		return out
	}
	return value
}

// ownedAt is owned for the value of an element of the set. An element without fields of its own stands for the whole value.
func ownedAt(fields *fieldpath.Set, each fieldpath.PathElement, value any) any {
	if below, deeper := fields.Children.Get(each); deeper {
		return owned(below, value)
	}
	return value
}

// Holds reports whether a field manager has applied exactly the desired fields, and the object still has their values.
// In doubt, because the server writes a value in another way, it returns false.
func Holds(desired, live *unstructured.Unstructured, manager string) bool {
	if !Applies(live, manager) || desired.GetAPIVersion() != live.GetAPIVersion() {
		return false
	}
	own, _ := managersOf(live, manager)
	for path := range own.Leaves().All() {
		if value, _ := valueAt(desired.Object, path); isEmptyMap(value) {
			own = own.Difference(fieldpath.NewSet(path.Copy())) // it does not stand for what others have in the map
		}
	}
	has, _ := owned(own, live.Object).(map[string]any)
	k, want := knowing(desired.GroupVersionKind().GroupKind()), withoutEmptyMaps(fieldsIn(desired))
	return k.covers("", want, has, false) && k.covers("", has, want, false)
}

// fieldsIn returns an object without its identity.
func fieldsIn(o *unstructured.Unstructured) map[string]any {
	out := maps.Clone(o.Object)
	delete(out, "apiVersion")
	delete(out, "kind")
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, key := range []string{"name", "namespace", "uid", "resourceVersion"} {
		delete(metadata, key)
	}
	if out["metadata"] = metadata; len(metadata) == 0 {
		delete(out, "metadata")
	}
	return out
}

// IsBare reports whether an object has only its identity.
func IsBare(o *unstructured.Unstructured) bool { return len(fieldsIn(o)) == 0 }

// OwnFields returns the fields that a manager has applied to an object.
func OwnFields(live *unstructured.Unstructured, manager string) *fieldpath.Set {
	own, _ := managersOf(live, manager)
	return own
}

func isEmptyMap(value any) bool {
	tree, is := value.(map[string]any)
	return is && len(tree) == 0
}

// withoutEmptyMaps returns a map without the maps in it that are empty. Maps in lists stay.
func withoutEmptyMaps(tree map[string]any) map[string]any {
	out := make(map[string]any, len(tree))
	for key, value := range tree {
		if below, is := value.(map[string]any); is {
			if below = withoutEmptyMaps(below); len(below) == 0 {
				continue
			}
			value = below
		}
		out[key] = value
	}
	return out
}

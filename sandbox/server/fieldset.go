// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"maps"
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// self is a key in a set of fields in the form of fieldsV1, where a field is a key of a map: {"f:spec":{".":{},"f:replicas":{}}}
// has spec and spec.replicas. A field with an empty map is in the set. One with fields below is in the set if self is beside
// them.
const self = "."

// with returns a set that also has the fields of another. It shares maps with the set, which is not changed.
func with(set map[string]any, more *fieldpath.Set) map[string]any {
	out := make(map[string]any, len(set)+more.Members.Size())
	maps.Copy(out, set)
	more.Members.Iterate(func(p fieldpath.PathElement) {
		key := keyOfElement(p)
		below, found := out[key].(map[string]any)
		switch {
		case !found:
			out[key] = map[string]any{}
		case len(below) > 0 && below[self] == nil:
			below = maps.Clone(below)
			below[self] = map[string]any{}
			out[key] = below
		}
	})
	more.Children.Iterate(func(p fieldpath.PathElement) {
		key := keyOfElement(p)
		below, found := out[key].(map[string]any)
		if found && len(below) == 0 {
			below = map[string]any{self: map[string]any{}}
		}
		children, _ := more.Children.Get(p)
		out[key] = with(below, children)
	})
	return out
}

// without returns a set that lacks the fields of another: the same map if it has none of them, and nil if nothing is left. It
// shares maps with the set, which is not changed.
func without(set map[string]any, less *fieldpath.Set) map[string]any {
	out := set
	put := func(key string, below map[string]any) {
		if sameMap(out, set) {
			out = maps.Clone(set)
		}
		if out[key] = below; len(below) == 0 {
			delete(out, key)
		}
	}
	less.Members.Iterate(func(p fieldpath.PathElement) {
		key := keyOfElement(p)
		below, found := set[key].(map[string]any)
		switch {
		case !found:
		case len(below) == 0:
			put(key, nil)
		case below[self] != nil:
			below = maps.Clone(below)
			delete(below, self)
			put(key, below)
		}
	})
	less.Children.Iterate(func(p fieldpath.PathElement) {
		key := keyOfElement(p)
		below, _ := out[key].(map[string]any)
		if len(below) == 0 {
			return
		}
		children, _ := less.Children.Get(p)
		if rest := without(below, children); !sameMap(rest, below) {
			put(key, rest)
			if len(rest) == 1 && rest[self] != nil {
				out[key] = map[string]any{}
			}
		}
	})
	if len(out) == 0 {
		return nil
	}
	return out
}

// keyOfElement returns the key of a part of a path.
func keyOfElement(p fieldpath.PathElement) string {
	if p.FieldName != nil {
		return "f:" + *p.FieldName
	}
	key, err := fieldpath.SerializePathElement(p)
	if err != nil {
		panic("server: " + err.Error()) // not reached: it comes from a comparison
	}
	return key
}

// sameMap reports whether two maps are one.
func sameMap(a, b map[string]any) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"maps"
	"reflect"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/bookkeeping"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// Essence returns the part of an object whose change counts: everything but apiVersion, kind, status and metadata, and
// of the metadata labels and annotations, without bookkeeping. Values are shared with the object; maps that differ are
// new. Empty maps are left out, so that removing the last label equals never having had one.
func Essence(object map[string]any) map[string]any {
	essence := make(map[string]any, len(object))
	for key, value := range object {
		switch key {
		case "apiVersion", "kind", "status", "metadata":
		default:
			essence[key] = value
		}
	}
	metadata, _ := object["metadata"].(map[string]any)
	kept := map[string]any{}
	for field, isMark := range map[string]func(key, value string) bool{"labels": bookkeeping.IsLabel, "annotations": bookkeeping.Is} {
		if of, _ := metadata[field].(map[string]any); len(of) > 0 {
			if of = authored(of, isMark); len(of) > 0 {
				kept[field] = of
			}
		}
	}
	if len(kept) > 0 {
		essence["metadata"] = kept
	}
	return essence
}

// authored returns labels or annotations without bookkeeping: the same map if it has none.
func authored(of map[string]any, isMark func(key, value string) bool) map[string]any {
	marks := func(key string, value any) bool {
		text, _ := value.(string)
		return isMark(key, text)
	}
	for key, value := range of {
		if marks(key, value) {
			of = maps.Clone(of)
			maps.DeleteFunc(of, marks)
			break
		}
	}
	return of
}

// project returns the essence limited to the fields.
func project(essence map[string]any, fields []dsl.Path) map[string]any {
	out := map[string]any{}
	for _, f := range fields {
		value, found := f.In(essence)
		if !found {
			continue
		}
		at := out
		for _, key := range f[:len(f)-1] {
			next, ok := at[key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[key] = next
			}
			at = next
		}
		at[f[len(f)-1]] = value
	}
	return out
}

// Digest returns a short text that differs for different values, as [plain.Digest] does. The digest of nil is "-".
func Digest(value any) string {
	if value == nil {
		return "-"
	}
	return digestOr(plain.Digest(value))
}

// KeyedDigest is Digest with a key, as [plain.KeyedDigest].
func KeyedDigest(key []byte, value any) string {
	if value == nil {
		return "-"
	}
	return digestOr(plain.KeyedDigest(key, value))
}

func digestOr(text string, err error) string {
	if err != nil {
		return "!" // not JSON, so not from an API object; never equal to a digest
	}
	return text
}

// Diff returns the differences between two essences, sorted by path. Maps are compared by key, lists and scalars as
// a whole. Null equals a missing key.
func Diff(from, to map[string]any) []dsl.Change {
	return diff(nil, from, to)
}

// Within returns the changes at, below or above the field. A change above the field is narrowed to it, and left out
// if the field itself did not change.
func Within(changes []dsl.Change, field dsl.Path) []dsl.Change {
	if len(field) == 0 {
		return changes
	}
	var out []dsl.Change
	for _, c := range changes {
		if !c.Path.Covers(field) {
			continue
		}
		if len(c.Path) >= len(field) {
			out = append(out, c)
			continue
		}
		rest := field[len(c.Path):]
		if narrow, changed := change(field, inside(c.Old, rest), inside(c.New, rest)); changed {
			out = append(out, narrow)
		}
	}
	return out
}

func diff(path dsl.Path, from, to map[string]any) (out []dsl.Change) {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(from)), maps.Keys(to))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		at := append(slices.Clone(path), key)
		a, aMap := from[key].(map[string]any)
		b, bMap := to[key].(map[string]any)
		if aMap && bMap {
			out = append(out, diff(at, a, b)...)
			continue
		}
		if c, changed := change(at, from[key], to[key]); changed {
			out = append(out, c)
		}
	}
	return out
}

func change(path dsl.Path, from, to any) (dsl.Change, bool) {
	c := dsl.Change{Path: path, Old: from, New: to, Op: dsl.Changed}
	switch {
	case from == nil && to == nil:
		return c, false
	case from == nil:
		c.Op = dsl.Added
	case to == nil:
		c.Op = dsl.Removed
	case reflect.DeepEqual(from, to):
		return c, false
	}
	return c, true
}

func inside(value any, path dsl.Path) any {
	tree, _ := value.(map[string]any)
	found, _ := path.In(tree)
	return found
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"maps"
	"reflect"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Diff returns how the new essence differs from the old, sorted by path. Maps are entered, lists
// and scalars compared whole; a key whose value is null equals a missing one.
func Diff(from, to map[string]any) []dsl.Change {
	return diff(nil, from, to, nil)
}

// Within returns the changes at or below the field, or that contain it. A change above the field
// is narrowed to it, and left out when it did not change the field itself.
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

func diff(path dsl.Path, from, to map[string]any, out []dsl.Change) []dsl.Change {
	keys := slices.Collect(maps.Keys(from))
	for key := range to {
		if _, both := from[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		at := append(slices.Clone(path), key)
		a, aMap := from[key].(map[string]any)
		b, bMap := to[key].(map[string]any)
		if aMap && bMap {
			out = diff(at, a, b, out)
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
	tree, ok := value.(map[string]any)
	if !ok {
		return nil
	}
	found, _ := path.In(tree)
	return found
}

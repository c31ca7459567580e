// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"slices"
)

// Edit is one object before and after a patch.
type Edit struct{ Before, After map[string]any }

// Repeats reports whether an edit changes only what an earlier one changed too, from the same values to the same
// values. One patch made both edits, at two times of one object: if it repeats the earlier edit, the values that it
// overwrites have not changed in between.
//
// A list whose entries have names, or are texts, is compared entry by entry. So conditions of other types may
// change.
func (e Edit) Repeats(first Edit) bool { return repeats(first.Before, first.After, e.Before, e.After) }

// repeats is Edit.Repeats for the values at one place of the object. A missing value is nil.
func repeats(was, made, is, makes any) bool {
	if same(is, makes) || same(was, is) && same(made, makes) {
		return true
	}
	if empty(is) && makes == nil || is == nil && empty(makes) {
		return false // there is nothing to compare below
	}
	four := [...]any{was, made, is, makes}
	if maps, ok := all[map[string]any](four); ok {
		return repeatsIn(maps)
	}
	if lists, ok := all[[]any](four); ok {
		return repeatsInLists(lists)
	}
	return false
}

// empty reports whether a value is a map or a list without entries.
func empty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// repeatsIn is repeats for each key of maps.
func repeatsIn(maps [4]map[string]any) bool {
	for _, changed := range maps[2:] {
		for key := range changed {
			if !repeats(maps[0][key], maps[1][key], maps[2][key], maps[3][key]) {
				return false
			}
		}
	}
	return true
}

// repeatsInLists is repeats for each entry of lists. It returns false if entries cannot be identified, or if the
// patch changes their order.
func repeatsInLists(lists [4][]any) bool {
	var maps [4]map[string]any
	var order [4][]string
	for i, list := range lists {
		maps[i] = map[string]any{}
		for _, entry := range list {
			name := entryName(entry)
			if _, again := maps[i][name]; again || name == "" {
				return false
			}
			maps[i][name] = entry
			order[i] = append(order[i], name)
		}
	}
	stays := func(in map[string]any, names []string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return in[name] == nil })
	}
	return repeatsIn(maps) && slices.Equal(stays(maps[3], order[2]), stays(maps[2], order[3]))
}

// entryName identifies an entry of a list: a text by itself, a map by its identifying field in lists of Kubernetes.
// It is empty if there is no such field.
func entryName(entry any) string {
	if text, is := entry.(string); is {
		return "=" + text
	}
	fields, _ := entry.(map[string]any)
	for _, key := range []string{"uid", "name", "key", "id", "type"} {
		if name, is := fields[key].(string); is && name != "" {
			return key + "=" + name
		}
	}
	return ""
}

// all converts values to a type, if all values that are not nil have it.
func all[T any](values [4]any) (out [4]T, ok bool) {
	for i, value := range values {
		if value == nil {
			continue
		}
		if out[i], ok = value.(T); !ok {
			return out, false
		}
	}
	return out, true
}

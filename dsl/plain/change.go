// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"maps"
	"reflect"
	"slices"
)

// Merged applies to a value the change from before to after: before is what somebody read of the value, and after
// what they made of it. Parts that are in neither stay, and so do parts that were read differently from how they
// are stored. In maps of before and after, null counts as missing. Lists are merged entry by entry; see partners.
// The arguments are not changed, but the result shares parts with them.
func Merged(was, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return was
	}
	switch after := after.(type) {
	case map[string]any:
		if read, isMap := before.(map[string]any); isMap || before == nil {
			has, _ := was.(map[string]any)
			return mergedMap(has, read, after)
		}
	case []any:
		if read, isList := before.([]any); isList {
			has, _ := was.([]any)
			return mergedList(has, read, after)
		}
	}
	return after
}

func mergedMap(was, before, after map[string]any) map[string]any {
	out := maps.Clone(was)
	if out == nil {
		out = map[string]any{}
	}
	for key, read := range before {
		if read != nil && after[key] == nil {
			delete(out, key)
		}
	}
	for key, value := range after {
		if value != nil && !reflect.DeepEqual(before[key], value) {
			out[key] = Merged(was[key], before[key], value)
		}
	}
	return out
}

func mergedList(was, before, after []any) []any {
	out := slices.Clone(after)
	if len(was) != len(before) {
		return out // the entries cannot be matched
	}
	for i, at := range partners(before, after) {
		if at >= 0 {
			out[i] = Merged(was[at], before[at], after[i])
		}
	}
	return out
}

// partners returns for each entry of a changed list the index of the entry it was made from, or -1 for a new one.
// It is the entry with the same name; or an equal entry; or, if neither has a name, the one at the same index,
// unless the list has become shorter, because indexes do not match then.
func partners(before, after []any) []int {
	out := slices.Repeat([]int{-1}, len(after))
	taken := make([]bool, len(before))
	pair := func(i, at int) {
		if i >= 0 && at >= 0 && at < len(before) && out[i] < 0 && !taken[at] {
			out[i], taken[at] = at, true
		}
	}
	named := byName(before)
	for name, i := range byName(after) {
		if at, found := named[name]; found {
			pair(i, at)
		}
	}
	for i, entry := range after {
		if i < len(before) && reflect.DeepEqual(before[i], entry) {
			pair(i, i)
		}
	}
	pairEqual(before, after, out, taken, pair)
	if len(after) < len(before) {
		return out
	}
	for i := range before {
		if nameOf(after[i]) == nameOf(before[i]) {
			pair(i, i)
		}
	}
	return out
}

// pairEqual pairs equal entries that have no partner yet, in order.
func pairEqual(before, after []any, partner []int, taken []bool, pair func(i, at int)) {
	equal := map[string][]int{}
	for at, entry := range before {
		if !taken[at] {
			equal[text(entry)] = append(equal[text(entry)], at)
		}
	}
	for i, entry := range after {
		if same := equal[text(entry)]; partner[i] < 0 && len(same) > 0 {
			pair(i, same[0])
			equal[text(entry)] = same[1:]
		}
	}
}

// byName returns the index of the entry with each name; -1 for a name of several entries.
func byName(list []any) map[string]int {
	out := map[string]int{}
	for i, entry := range list {
		name := nameOf(entry)
		if name == "" {
			continue
		}
		if _, again := out[name]; again {
			i = -1
		}
		out[name] = i
	}
	return out
}

// nameOf returns the identifier of an entry in lists of Kubernetes; empty if it has none.
func nameOf(entry any) string {
	fields, _ := entry.(map[string]any)
	for _, key := range []string{"name", "key", "id", "type"} {
		if name, is := fields[key].(string); is && name != "" {
			return key + " " + name
		}
	}
	return ""
}

func text(entry any) string {
	data, err := AppendJSON(nil, entry)
	if err != nil {
		return ""
	}
	return string(data)
}

// Difference returns the merge patch (RFC 7386) from one map to another; empty if they are equal. Lists are
// replaced.
func Difference(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for key := range from {
		if _, stays := to[key]; !stays {
			out[key] = nil
		}
	}
	for key, wanted := range to {
		has, found := from[key]
		below, isMap := has.(map[string]any)
		above, both := wanted.(map[string]any)
		switch {
		case isMap && both:
			if inner := Difference(below, above); len(inner) > 0 {
				out[key] = inner
			}
		case !found || !reflect.DeepEqual(has, wanted):
			out[key] = wanted
		}
	}
	return out
}

// Patched returns the tree with a merge patch (RFC 7386) applied; neither argument is changed.
func Patched(tree, patch map[string]any) map[string]any {
	out := maps.Clone(tree)
	if out == nil {
		out = map[string]any{}
	}
	for key, value := range patch {
		over, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, key)
		case isMap:
			below, _ := out[key].(map[string]any)
			out[key] = Patched(below, over)
		default:
			out[key] = value
		}
	}
	return out
}

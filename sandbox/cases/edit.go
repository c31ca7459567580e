// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"encoding/json"

	"github.com/handwerk-dev/handwerk/dsl/form"
)

// Edit is a change of a file with cases, after which an expectation is what was found.
type Edit struct {
	// At is the path of the value. It may lack the last key.
	At form.Path `json:"at"`
	// Value is the new value.
	Value json.RawMessage `json:"value"`
}

// edit is a change to a value, or none if the value has no JSON.
func edit(at form.Path, value any) []Edit {
	data, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	return []Edit{{at, data}}
}

// edits are the changes after which a wanted value is a subset of what was found. They are as small as they can be.
func edits(at form.Path, got, want any) (out []Edit) {
	switch want := want.(type) {
	case map[string]any:
		tree, is := got.(map[string]any)
		if !is {
			break
		}
		for _, key := range sortedKeys(want) {
			if value, there := tree[key]; !there && want[key] != nil || !has(value, want[key]) {
				out = append(out, edits(at.Key(key), value, want[key])...)
			}
		}
		return out
	case []any:
		list, is := got.([]any)
		if !is || len(list) != len(want) {
			break
		}
		for i := range want {
			if !has(list[i], want[i]) {
				out = append(out, edits(at.Index(i), list[i], want[i])...)
			}
		}
		return out
	}
	return edit(at, alike(got, want))
}

// alike is as much of a value as another one names: the same fields of maps, and in new elements of lists those of the
// last one.
func alike(got, want any) any {
	switch want := want.(type) {
	case map[string]any:
		tree, is := got.(map[string]any)
		if !is || len(want) == 0 {
			return got
		}
		out := map[string]any{}
		for key, value := range want {
			if found, there := tree[key]; there {
				out[key] = alike(found, value)
			}
		}
		return out
	case []any:
		list, is := got.([]any)
		if !is || len(want) == 0 {
			return got
		}
		out := make([]any, len(list))
		for i := range list {
			out[i] = alike(list[i], want[min(i, len(want)-1)])
		}
		return out
	default:
		return got
	}
}

// edit is the change after which a number is the one that was found.
func (c counted) edit(at form.Path, n int) []Edit {
	if c.AtMost != nil && c.Times == nil {
		return edit(at.Key("atMost"), n)
	}
	return edit(at.Key("times"), n)
}

// statusValue is the status of a condition as authors write it.
func statusValue(status string) any {
	switch status {
	case "True", "False":
		return status == "True"
	default:
		return status
	}
}

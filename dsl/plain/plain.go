// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package plain works with plain values, as JSON decodes them and as objects of the API machinery have them: maps
// with string keys, slices, strings, booleans, int64, float64 and nil. It is pure.
package plain

import (
	"encoding/json"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Value converts any JSON value to a plain one. It goes by way of JSON, so that encoding/json treats authors'
// structs as they expect. Plain values are copied.
func Value(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, int64, float64:
		return v, nil
	case string:
		return ValidText(v), nil
	}
	if out, plain := copied(value, 0); plain {
		return out, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	err = utiljson.Unmarshal(data, &out)
	return out, err
}

// deepest is how deep a value is copied. A value that contains itself is left to encoding/json, which returns an
// error.
const deepest = 100

// copied returns a copy of a plain value, equal to the result of a round trip through JSON. It reports false for
// values that such a round trip may change: a float, which may be a whole number in JSON, a text that is not valid
// UTF-8, a typed nil.
func copied(value any, depth int) (out any, plain bool) {
	switch v := value.(type) {
	case nil, bool, int64:
		return v, true
	case string:
		return v, utf8.ValidString(v)
	case []any:
		if v == nil || depth == deepest {
			return nil, false
		}
		list := make([]any, len(v))
		for i, entry := range v {
			if list[i], plain = copied(entry, depth+1); !plain {
				return nil, false
			}
		}
		return list, true
	case map[string]any:
		if v == nil || depth == deepest {
			return nil, false
		}
		tree := make(map[string]any, len(v))
		for key, below := range v {
			if tree[key], plain = copied(below, depth+1); !plain || !utf8.ValidString(key) {
				return nil, false
			}
		}
		return tree, true
	}
	return nil, false
}

// Removes reports whether a merge patch only removes fields. On a field that is not a map it has no effect.
func Removes(patch map[string]any) bool {
	for _, value := range patch {
		if sub, isMap := value.(map[string]any); value != nil && (!isMap || !Removes(sub)) {
			return false
		}
	}
	return len(patch) > 0
}

// Maps returns the maps in a list; nil for a value of another kind.
func Maps(list any) (out []map[string]any) {
	items, _ := list.([]any)
	for _, item := range items {
		if m, is := item.(map[string]any); is {
			out = append(out, m)
		}
	}
	return out
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"maps"
	"reflect"
	"slices"
	"unicode/utf8"
)

// Garbled reports whether a value is a text, of any string type, that is not valid UTF-8, and returns it. JSON
// would change such a text.
func Garbled(value any) (text string, garbled bool) {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.String || utf8.ValidString(v.String()) {
		return "", false
	}
	return v.String(), true
}

// Valid returns a plain value with all texts made valid UTF-8, as the API server does. The value itself is not
// changed; if all its texts are valid, it is returned as it is.
func Valid(value any) any {
	switch v := value.(type) {
	case string:
		return ValidText(v)
	case []any:
		return validList(v)
	case map[string]any:
		return ValidMap(v)
	}
	return value
}

// ValidText is Valid for a text: each invalid byte becomes U+FFFD.
func ValidText(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

// ValidMap is Valid for a map.
func ValidMap(tree map[string]any) map[string]any {
	out := tree
	for key, value := range tree {
		name, valid := ValidText(key), Valid(value)
		if name == key && identical(value, valid) {
			continue
		}
		if identical(out, tree) {
			out = maps.Clone(tree)
		}
		if name != key {
			delete(out, key)
		}
		out[name] = valid
	}
	return out
}

func validList(list []any) []any {
	out := list
	for i, value := range list {
		if valid := Valid(value); !identical(value, valid) {
			if identical(out, list) {
				out = slices.Clone(list)
			}
			out[i] = valid
		}
	}
	return out
}

// identical reports whether two values are the same, and not only equal.
func identical(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		return len(a) == 0 || &a[0] == &b.([]any)[0]
	case string:
		return a == b
	}
	return true
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"reflect"
	"slices"
)

// Outside returns the paths of the fields that a struct has in JSON and an object lacks. Lacks says that of a path, and whether
// a part of what it leads to is there; then the fields below are asked for one by one, where a struct tells them. Any
// other type has no such fields.
func Outside(t reflect.Type, lacks func(path []string) (lacks, part bool)) [][]string {
	return outside(t, nil, nil, lacks)
}

// outside is Outside for the struct at a path. Within are the structs in which it is embedded: one that embeds itself has no
// further fields there, as for encoding/json.
func outside(t reflect.Type, at []string, within []reflect.Type, lacks func([]string) (lacks, part bool)) (out [][]string) {
	t, isStruct := structOf(t)
	if !isStruct || slices.Contains(within, t) {
		return nil
	}
	for field := range t.Fields() {
		name, inline, known := nameOfField(field)
		if inline {
			out = append(out, outside(field.Type, at, append(slices.Clip(within), t), lacks)...)
		}
		if !known {
			continue
		}
		path := append(slices.Clip(at), name)
		_, divides := structOf(field.Type)
		switch missing, part := lacks(path); {
		case missing && part && divides:
			out = append(out, outside(field.Type, path, nil, lacks)...)
		case missing:
			out = append(out, path)
		}
	}
	return out
}

// structOf returns the struct that a type is, or points to, when its fields are those that it has in JSON.
func structOf(t reflect.Type) (reflect.Type, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct && !encodesItself(t)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"reflect"
	"slices"
)

// Outside returns the paths of the JSON fields of a struct type that an object lacks. Lacks reports whether a path
// is missing, and whether a part of its value exists; if so, the fields of a struct there are checked one by one.
// Types other than structs have no such fields.
func Outside(t reflect.Type, lacks func(path []string) (lacks, part bool)) [][]string {
	return outside(t, nil, nil, lacks)
}

// outside is Outside for the struct at a path. Within are the structs around it. A struct that embeds itself has no
// further fields there, as in encoding/json.
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

// structOf returns the struct type of a type or a pointer, if its fields define its JSON form.
func structOf(t reflect.Type) (reflect.Type, bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct && !encodesItself(t)
}

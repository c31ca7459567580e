// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// Lean is [Value] without what typed values bring along unasked: a struct that is zero and has omitempty, which
// encoding/json writes all the same, as the empty resources of a container; and null in maps.
func Lean(value any) (any, error) {
	out, err := Value(value)
	if err == nil {
		lean(reflect.ValueOf(value), out)
		dropNull(out)
	}
	return out, err
}

// lean takes out of a tree what is zero in the value of which it is.
func lean(v reflect.Value, tree any) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		lean(v.Elem(), tree)
	case reflect.Struct:
		if fields, isMap := tree.(map[string]any); isMap && !encodesItself(v.Type()) {
			leanStruct(v, fields)
		}
	case reflect.Slice, reflect.Array:
		if list, isList := tree.([]any); isList && len(list) == v.Len() && holdsStructs(v.Type().Elem()) {
			for i, entry := range list {
				lean(v.Index(i), entry)
			}
		}
	case reflect.Map:
		fields, isMap := tree.(map[string]any)
		if !isMap || v.Type().Key().Kind() != reflect.String || !holdsStructs(v.Type().Elem()) {
			return
		}
		for each := v.MapRange(); each.Next(); {
			lean(each.Value(), fields[each.Key().String()])
		}
	}
}

func leanStruct(v reflect.Value, tree map[string]any) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			lean(v.Field(i), tree)
			continue
		case !field.IsExported() || name == "-" && options == "":
			continue
		case name == "":
			name = field.Name
		}
		sub, found := tree[name]
		switch {
		case found && strings.Contains(options, "omitempty") && field.Type.Kind() == reflect.Struct && v.Field(i).IsZero():
			delete(tree, name)
		case found:
			lean(v.Field(i), sub)
		}
	}
}

// holdsStructs reports whether there may be a struct in values of a type.
func holdsStructs(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		return true
	}
	return false
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// encodesItself reports whether a type says itself how it is in JSON, so that its fields tell nothing of that.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshaler) || p.Implements(textMarshaler)
}

// dropNull removes from maps what is null.
func dropNull(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for key, value := range tree {
			if value == nil {
				delete(tree, key)
			}
			dropNull(value)
		}
	case []any:
		for _, entry := range tree {
			dropNull(entry)
		}
	}
}

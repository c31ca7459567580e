// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plain

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Lean is [Value] without parts that typed values contain without being asked: empty structs with omitempty, which
// encoding/json writes all the same, as the empty resources of a container; and null in maps.
func Lean(value any) (any, error) {
	out, err := Value(value)
	if err == nil {
		lean(reflect.ValueOf(value), out)
		dropNull(out)
	}
	return out, err
}

// lean removes from a tree what is zero in the value that the tree was made from.
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
		name, inline, known := nameOfField(field)
		if inline {
			lean(v.Field(i), tree)
		}
		if !known {
			continue
		}
		sub, found := tree[name]
		switch {
		case found && strings.Contains(field.Tag.Get("json"), ",omitempty") && field.Type.Kind() == reflect.Struct && v.Field(i).IsZero():
			delete(tree, name)
		case found:
			lean(v.Field(i), sub)
		}
	}
}

// Fill adds to a tree from [Lean] the structs of the type that are empty in it and not empty in the later tree.
// Fields of such a struct that are zero without being asked are then no difference between the two.
func Fill(before, after map[string]any, t reflect.Type) { fill(before, after, t, nil) }

// fill is Fill for a struct that is embedded in others.
func fill(before, after map[string]any, t reflect.Type, within []reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || encodesItself(t) || slices.Contains(within, t) {
		return
	}
	for field := range t.Fields() {
		name, inline, known := nameOfField(field)
		if inline {
			fill(before, after, field.Type, append(slices.Clip(within), t))
		}
		became, isMap := after[name].(map[string]any)
		if !known || !isMap {
			continue
		}
		if before[name] == nil && field.Type.Kind() == reflect.Struct && !encodesItself(field.Type) {
			if zero, err := Lean(reflect.Zero(field.Type).Interface()); err == nil {
				before[name] = zero
			}
		}
		if was, both := before[name].(map[string]any); both {
			Fill(was, became, field.Type)
		}
	}
}

// nameOfField returns the JSON name of a field. An inline field has no name: its fields are those of the outer
// struct.
func nameOfField(field reflect.StructField) (name string, inline, known bool) {
	tag := field.Tag.Get("json")
	name, _, _ = strings.Cut(tag, ",")
	switch {
	case field.Anonymous && name == "":
		return "", true, false
	case !field.IsExported() || tag == "-":
		return "", false, false
	case name == "":
		name = field.Name
	}
	return name, false, true
}

// holdsStructs reports whether values of a type may contain structs.
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

// encodesItself reports whether a type defines its JSON form, so that its fields do not.
func encodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshaler) || p.Implements(textMarshaler)
}

// dropNull removes null values from maps.
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

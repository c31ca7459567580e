// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// inside returns a value as the API server prints it in errors: its own types have no names for JSON, so that fields
// have those of Go and none is left out. Those of the API machinery are as usual.
func inside(value any) json.RawMessage {
	var out bytes.Buffer
	writeInside(&out, reflect.ValueOf(value))
	return out.Bytes()
}

func writeInside(out *bytes.Buffer, v reflect.Value) {
	switch {
	case !v.IsValid(), (v.Kind() == reflect.Pointer || v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.IsNil():
		out.WriteString("null")
	case v.Kind() == reflect.Struct && strings.HasPrefix(v.Type().PkgPath(), "k8s.io/api/"):
		out.WriteByte('{')
		writeFields(out, v)
		out.WriteByte('}')
	case v.Kind() == reflect.Pointer:
		writeInside(out, v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8:
		out.WriteByte('[')
		for i := range v.Len() {
			comma(out)
			writeInside(out, v.Index(i))
		}
		out.WriteByte(']')
	case v.Kind() == reflect.Map:
		writeMap(out, v)
	default:
		data, err := json.Marshal(v.Interface())
		if err != nil {
			data = []byte("null") // not reached: the API server's types can be encoded
		}
		out.Write(data)
	}
}

// writeFields writes the fields of a struct, and those of embedded ones in their place. The API server's own types have no version.
func writeFields(out *bytes.Buffer, v reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).Name == "TypeMeta" {
			continue
		}
		if v.Type().Field(i).Anonymous {
			if inner := inside(v.Field(i).Interface()); len(inner) > len("{}") {
				comma(out)
				out.Write(inner[1 : len(inner)-1])
			}
			continue
		}
		comma(out)
		out.WriteString(strconv.Quote(v.Type().Field(i).Name) + ":")
		writeInside(out, v.Field(i))
	}
}

func writeMap(out *bytes.Buffer, v reflect.Value) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	out.WriteByte('{')
	for _, key := range keys {
		comma(out)
		out.WriteString(strconv.Quote(key.String()) + ":")
		writeInside(out, v.MapIndex(key))
	}
	out.WriteByte('}')
}

// comma separates what follows from what is there. No value ends with an opening bracket.
func comma(out *bytes.Buffer) {
	if last := out.Bytes()[out.Len()-1]; last != '{' && last != '[' {
		out.WriteByte(',')
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// openAPI reads a schema in the form of Kubernetes, strictly.
func (b *builder) openAPI() *apiextensions.JSONSchemaProps {
	before := len(b.faults)
	b.fits([]string{"openAPIV3Schema"}, reflect.TypeFor[apiextensions.JSONSchemaProps](), b.form.OpenAPIV3Schema)
	out := &apiextensions.JSONSchemaProps{}
	if len(b.faults) > before {
		return out
	}
	data, err := json.Marshal(b.form.OpenAPIV3Schema)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		b.fault([]string{"openAPIV3Schema"}, "reading the schema: %v", err)
	}
	return out
}

// fits checks that a value has the form of a type of the Kubernetes API.
func (b *builder) fits(path []string, t reflect.Type, value any) {
	switch t {
	case reflect.TypeFor[apiextensions.JSON]():
		return
	case reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool]():
		if _, is := value.(bool); !is {
			b.fits(path, reflect.TypeFor[apiextensions.JSONSchemaProps](), value)
		}
		return
	case reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray](), reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray]():
		if _, list := value.([]any); !list {
			b.fits(path, reflect.TypeFor[apiextensions.JSONSchemaProps](), value)
		}
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		b.fits(path, t.Elem(), value)
	case reflect.Struct:
		b.fields(path, t, value)
	case reflect.Map:
		b.entries(path, value, func(name string, v any) { b.fits(slices.Concat(path, []string{name}), t.Elem(), v) })
	case reflect.Slice:
		list, is := value.([]any)
		if !is {
			b.fault(path, "want a list, found %s", described(value))
		}
		for i, v := range list {
			b.fits(slices.Concat(path, []string{strconv.Itoa(i)}), t.Elem(), v)
		}
	default:
		b.single(path, t.Kind(), value)
	}
}

// single checks a value that holds no others.
func (b *builder) single(path []string, kind reflect.Kind, value any) {
	want, ok := "", false
	switch kind {
	case reflect.String:
		want = "text"
		_, ok = value.(string)
	case reflect.Bool:
		want = "true or false"
		_, ok = value.(bool)
	case reflect.Float64:
		want = "a number"
		_, ok = value.(float64)
		if _, whole := value.(int64); whole {
			ok = true
		}
	default:
		want = "an integer"
		_, ok = value.(int64)
	}
	if !ok {
		b.fault(path, "want %s, found %s", want, described(value))
	}
}

// fields checks the keys of a map against the fields of a struct.
func (b *builder) fields(path []string, t reflect.Type, value any) {
	known := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = f.Type
	}
	b.entries(path, value, func(name string, v any) {
		at := slices.Concat(path, []string{name})
		if next, is := known[name]; is {
			b.fits(at, next, v)
			return
		}
		message := unknown("field", name, slices.Sorted(maps.Keys(known)))
		if !strings.Contains(message, "did you mean") {
			message = fmt.Sprintf("unknown field %s (fields of an object stand under properties)", quote(name))
		}
		b.fault(at, "%s", message)
	})
}

func (b *builder) entries(path []string, value any, visit func(string, any)) {
	entries, is := value.(map[string]any)
	if !is {
		b.fault(path, "want a map, found %s", described(value))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		visit(name, entries[name])
	}
}

// described says what a plain value is.
func described(value any) string {
	switch v := value.(type) {
	case nil:
		return "nothing"
	case string:
		return "the text " + quote(v)
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	default:
		return fmt.Sprint(v)
	}
}

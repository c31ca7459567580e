// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// checkParams checks parameters against the struct that the function decodes them into, so that a
// mistake is found when the configuration is loaded. All faults are returned, joined.
func checkParams(f dsl.Function, params dsl.Params) error {
	if params == nil {
		return nil
	}
	if f.Params == nil {
		return &dsl.ConfigError{Path: []string{"with"}, Message: f.Name + " takes no parameters"}
	}
	t := reflect.TypeOf(f.Params)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	c := &checker{}
	c.value([]string{"with"}, map[string]any(params), t)
	if len(c.faults) > 0 {
		return errors.Join(c.faults...)
	}
	if c.computed {
		return nil
	}
	if err := params.Into(reflect.New(t).Interface()); err != nil {
		return &dsl.ConfigError{Path: []string{"with"}, Message: err.Error()}
	}
	return nil
}

// checker compares plain values with Go types and gathers what does not fit.
type checker struct {
	faults []error
	// computed: a parameter has ${…} in it.
	computed bool
}

func (c *checker) fault(path []string, format string, args ...any) {
	c.faults = append(c.faults, &dsl.ConfigError{Path: slices.Clone(path), Message: fmt.Sprintf(format, args...)})
}

func (c *checker) value(path []string, value any, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil {
		return // it leaves the field as it is
	}
	if text, ok := value.(string); ok && hasExpression(text) {
		c.computed = true // its value is checked when there is one
		return
	}
	list, isList := value.([]any)
	tree, isMap := value.(map[string]any)
	switch {
	case reads(t) || t.Kind() == reflect.Interface:
		c.scalar(path, value, t)
	case t.Kind() == reflect.Struct && isMap:
		c.structure(path, tree, t)
	case t.Kind() == reflect.Map && isMap:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			c.value(append(path, key), tree[key], t.Elem())
		}
	case t.Kind() == reflect.Slice && isList:
		for i, element := range list {
			c.value(append(path, strconv.Itoa(i)), element, t.Elem())
		}
	default:
		c.scalar(path, value, t)
	}
}

func (c *checker) structure(path []string, tree map[string]any, t reflect.Type) {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "" && !field.Anonymous {
			name = field.Name
		}
		if name != "" && name != "-" && field.IsExported() {
			fields[name] = field.Type
		}
	}
	known := slices.Sorted(maps.Keys(fields))
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		at := append(path, key)
		if fieldType, found := fields[key]; found {
			c.value(at, tree[key], fieldType)
			continue
		}
		hint := "want one of " + strings.Join(known, ", ")
		if meant, near := dsl.Nearest(key, known); near {
			hint = fmt.Sprintf("did you mean %q?", meant)
		}
		c.fault(at, "unknown parameter (%s)", hint)
	}
}

// scalar checks a value that is decoded whole.
func (c *checker) scalar(path []string, value any, t reflect.Type) {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if _, mismatch := errors.AsType[*json.UnmarshalTypeError](err); mismatch {
		c.fault(path, "want %s, found %s", wanted(t), data)
	} else if err != nil {
		c.fault(path, "%v", err)
	}
}

// reads reports whether a type reads its JSON itself.
func reads(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// wanted says what a value of the type is to people who write YAML.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "a map"
	case reflect.Slice, reflect.Array:
		return "a list"
	default:
		return "a whole number that fits"
	}
}

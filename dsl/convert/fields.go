// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/dsl"
)

// property returns the schema of a field of an object; nil if the object has no such field. Without a schema, an object has any
// field.
func property(schema map[string]any, name string) map[string]any {
	if len(schema) == 0 {
		return map[string]any{}
	}
	properties, _ := schema["properties"].(map[string]any)
	if of, is := properties[name].(map[string]any); is {
		return of
	}
	if of, is := schema["additionalProperties"].(map[string]any); is {
		return of
	}
	if schema["additionalProperties"] == true || schema["x-kubernetes-preserve-unknown-fields"] == true {
		return map[string]any{}
	}
	return nil
}

// split returns copies of the part of a value that a schema has a place for, and of the rest. It reports false if there is no place
// at all.
func split(value any, schema map[string]any) (shared, rest any, some bool) {
	if schema == nil || !fits(value, schema) {
		return nil, nil, false
	}
	tree, is := value.(map[string]any)
	if !is {
		return runtime.DeepCopyJSONValue(value), nil, true
	}
	of, left := map[string]any{}, map[string]any{}
	for key, each := range tree {
		if inner, more, found := split(each, property(schema, key)); found {
			of[key] = inner
			setRest(left, key, more)
		} else {
			left[key] = runtime.DeepCopyJSONValue(each)
		}
	}
	if len(left) > 0 {
		return of, left, true
	}
	return of, nil, true
}

// fitting returns copies of the fields of an object that its schema has a place for. Others were not kept by a conversion: somebody has
// written them by hand.
func fitting(fields, schema map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range fields {
		if of, _, some := split(value, property(schema, key)); some {
			out[key] = of
		}
	}
	return out
}

// setRest adds a rest, unless there is none.
func setRest(to map[string]any, key string, rest any) {
	if rest != nil {
		to[key] = rest
	}
}

// fits reports whether a value has the type of a schema, and is one of its values.
func fits(value any, schema map[string]any) bool {
	if value == nil && schema["nullable"] == true {
		return true
	}
	if words, is := schema["enum"].([]any); is && !slices.Contains(words, value) {
		return false
	}
	switch schema["type"] {
	case "string":
		_, is := value.(string)
		return is
	case "boolean":
		_, is := value.(bool)
		return is
	case "array":
		_, is := value.([]any)
		return is
	case "object":
		_, is := value.(map[string]any)
		return is
	case "integer":
		f, is := value.(float64)
		_, whole := value.(int64)
		return whole || is && f == math.Trunc(f)
	case "number":
		_, is := value.(float64)
		_, whole := value.(int64)
		return whole || is
	}
	return true
}

// remove removes a field of a tree. With it go the objects on the way that have no other field, if hollow says so.
func remove(tree map[string]any, path dsl.Path, hollow bool) {
	if len(path) == 1 {
		delete(tree, path[0])
		return
	}
	next, is := tree[path[0]].(map[string]any)
	if !is {
		return
	}
	if remove(next, path[1:], hollow); hollow && len(next) == 0 {
		delete(tree, path[0])
	}
}

// Remove removes a field of a tree. Objects on the way stay.
func Remove(tree map[string]any, path dsl.Path) { remove(tree, path, false) }

// Put sets a field of a tree, and makes the objects on the way. It is an error if something else is there.
func Put(tree map[string]any, path dsl.Path, value any) error {
	for _, key := range path[:len(path)-1] {
		next, is := tree[key].(map[string]any)
		if _, found := tree[key]; found && !is {
			return fmt.Errorf("%s is within a value that is no object", path)
		}
		if !is {
			next = map[string]any{}
			tree[key] = next
		}
		tree = next
	}
	tree[path[len(path)-1]] = value
	return nil
}

// merge adds the values of one tree to another.
func merge(to, from map[string]any) {
	for key, value := range from {
		inner, is := value.(map[string]any)
		if of, both := to[key].(map[string]any); is && both {
			merge(of, inner)
			continue
		}
		to[key] = value
	}
}

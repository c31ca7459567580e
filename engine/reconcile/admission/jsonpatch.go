// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"maps"
	"reflect"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
)

// operation is an operation of a JSON patch.
type operation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// Value is absent for op remove.
	Value any `json:"value,omitzero"`
}

// null is the value null of an operation, which omitzero would leave out.
type null struct{}

// MarshalJSON returns null.
func (*null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// difference adds to a list the operations that make one map of another. Lists are replaced as a whole, as in a merge patch.
func difference(out []operation, at dsl.Path, before, after map[string]any) []operation {
	for _, key := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[key]; !stays {
			out = append(out, operation{Op: "remove", Path: append(slices.Clone(at), key).Pointer()})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(after)) {
		path, value := append(slices.Clone(at), key), after[key]
		was, there := before[key]
		inner, isMap := value.(map[string]any)
		outer, wasMap := was.(map[string]any)
		switch {
		case !there:
			out = append(out, operation{"add", path.Pointer(), shown(value)})
		case isMap && wasMap:
			out = difference(out, path, outer, inner)
		case !reflect.DeepEqual(was, value):
			out = append(out, operation{"replace", path.Pointer(), shown(value)})
		}
	}
	return out
}

func shown(value any) any {
	if value == nil {
		return &null{}
	}
	return value
}

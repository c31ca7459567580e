// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package plain is about plain values: what JSON decodes to, as the objects of the API machinery hold it. These are
// maps with string keys, slices, strings, booleans, int64, float64 and nil. It is pure.
package plain

import (
	"encoding/json"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Value turns any value that JSON can hold into a plain one. It goes by way of JSON: authors' structs are theirs,
// and what encoding/json does with them is what they expect. What is plain already is copied.
func Value(value any) (any, error) {
	switch v := value.(type) {
	case nil, string, bool, int64, float64:
		return v, nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	err = utiljson.Unmarshal(data, &out)
	return out, err
}

// Removes reports whether all that a merge patch asks for is that fields be removed. Where there is no map, it asks
// for nothing.
func Removes(patch map[string]any) bool {
	for _, value := range patch {
		if sub, isMap := value.(map[string]any); value != nil && (!isMap || !Removes(sub)) {
			return false
		}
	}
	return len(patch) > 0
}

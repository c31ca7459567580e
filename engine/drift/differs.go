// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Differs reports whether what is desired may change the value of a field that an error of the API server names, as in
// spec.ports[0].nodePort. A value that live has and desired lacks may be removed. Of a field that neither has, its parent counts:
// some errors name groups of fields, as spec.persistentvolumesource.
func Differs(desired, live *unstructured.Unstructured, field string) bool {
	k := knowing(desired.GroupVersionKind().GroupKind())
	for way := steps(field); len(way) > 0; way = way[:len(way)-1] {
		want, wanted := follow(desired.Object, way)
		has, there := follow(live.Object, way)
		switch key := way[len(way)-1]; {
		case wanted:
			return !there || !k.covers(key, want, has, k.isQuantity(parent(way), key))
		case there:
			return true
		}
	}
	return true // the object as a whole
}

// parent returns the key before the last one; empty if there is none.
func parent(way []string) string {
	if len(way) < 2 {
		return ""
	}
	return way[len(way)-2]
}

// steps returns the keys and indexes of a path of the API server. The path of the whole object is "<nil>".
func steps(field string) (out []string) {
	if field == "<nil>" {
		return nil
	}
	for field != "" {
		switch end := strings.IndexAny(field, ".["); {
		case field[0] == '.':
			field = field[1:]
		case field[0] == '[':
			inside, rest, _ := strings.Cut(field[1:], "]")
			out, field = append(out, inside), rest
		case end < 0:
			return append(out, field)
		default:
			out, field = append(out, field[:end]), field[end:]
		}
	}
	return out
}

// follow returns the value at the end of a path.
func follow(value any, way []string) (any, bool) {
	for _, step := range way {
		switch of := value.(type) {
		case map[string]any:
			next, found := of[step]
			if !found {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(of) {
				return nil, false
			}
			value = of[i]
		default:
			return nil, false
		}
	}
	return value, true
}

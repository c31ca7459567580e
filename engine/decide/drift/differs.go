// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Differs reports whether the desired object may change the value of a field that an error of the API server names, such
// as spec.ports[0].nodePort. A value that live has and desired lacks may be removed. If neither has the field, its
// parent counts, because some errors name groups of fields, such as spec.persistentvolumesource.
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

// Rejected knows who owns the fields that errors of the API server name. Live must have its managedFields.
type Rejected struct {
	Desired, Live *unstructured.Unstructured
	Manager       string
}

// Others reports whether others have set a field, and neither the template nor the manager sets it. If neither object
// has the field, its parent counts. A value without a manager may follow from one of the template, as clusterIPs of a
// Service do.
func (r Rejected) Others(field string) bool {
	for way := steps(field); len(way) > 0; way = way[:len(way)-1] {
		if _, wanted := follow(r.Desired.Object, way); wanted {
			return false
		}
		if _, there := follow(r.Live.Object, way); there {
			own, others := r.managers(way)
			return others && !own
		}
	}
	return false // the object as a whole
}

// Own reports whether the manager has set a field.
func (r Rejected) Own(field string) bool {
	own, _ := r.managers(steps(field))
	return own
}

// managers reports whether the manager, and whether others, have set something at a path. For a path in a list, the list
// counts, because managedFields do not have the indexes of its entries.
func (r Rejected) managers(way []string) (own, others bool) {
	isIndex := func(step string) bool { _, err := strconv.Atoi(step); return err == nil }
	if at := slices.IndexFunc(way, isIndex); at >= 0 {
		way = way[:at]
	}
	mine, rest := managersOf(r.Live, r.Manager)
	return hasWithin(mine, pathOf(way)), hasWithin(rest, pathOf(way))
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

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// coversObject reports whether live has everything that desired has. What live has besides belongs
// to others or to the server's defaults.
func coversObject(desired, live *unstructured.Unstructured) bool {
	return knowing(desired.GroupVersionKind().GroupKind()).covers("", desired.Object, live.Object, false)
}

// covers compares the values of a key, which entries of a list have from the list. Where it cannot be sure it sees a difference: that costs a
// request, of which the applier remembers that it changed nothing.
func (k knowledge) covers(key string, desired, live any, quantities bool) bool {
	switch want := desired.(type) {
	case map[string]any:
		has, ok := live.(map[string]any)
		if !ok {
			return live == nil && len(want) == 0
		}
		return k.coversMap(key, want, has, quantities)
	case []any:
		has, ok := live.([]any)
		if !ok {
			return live == nil && len(want) == 0
		}
		return k.coversList(key, want, has, quantities)
	case nil:
		return live == nil
	}
	return sameScalar(desired, live) || quantities && sameQuantity(desired, live)
}

func (k knowledge) coversMap(key string, want, has map[string]any, quantities bool) bool {
	for field, value := range want {
		if has[field] == nil && k.leavesOut(key, field, value) {
			continue
		}
		if !k.covers(field, value, has[field], quantities || holdsQuantities(field) || k.isQuantity(key, field)) {
			return false
		}
	}
	return true
}

// coversList compares in order when the lists are of one length. Otherwise live may have entries
// of others, where that can be: then each wanted one must be found.
func (k knowledge) coversList(key string, want, has []any, quantities bool) bool {
	if len(want) > len(has) {
		return false
	}
	if len(want) == len(has) {
		ordered := true
		for i := range want {
			ordered = ordered && k.covers(key, want[i], has[i], quantities)
		}
		if ordered {
			return true
		}
	}
	for _, w := range want {
		if !slices.ContainsFunc(has, func(h any) bool { return k.joins(key, w, h) && k.covers(key, w, h, quantities) }) {
			return false
		}
	}
	return true
}

// joins reports whether an entry of a list that others may add to is the wanted one.
func (k knowledge) joins(list string, want, has any) bool {
	entry, isMap := want.(map[string]any)
	if !isMap {
		return list == "finalizers"
	}
	other, _ := has.(map[string]any)
	keys := []string{"name"}
	if k.builtin {
		keys = k.lists[list]
	}
	for _, key := range keys {
		if entry[key] != nil {
			return sameScalar(entry[key], other[key])
		}
	}
	return false
}

// holdsQuantities reports whether a map under this key has quantities for values, which the
// server rewrites: 1000m becomes 1.
func holdsQuantities(key string) bool {
	switch key {
	case "requests", "limits", "hard", "capacity":
		return true
	}
	return false
}

func sameScalar(a, b any) bool {
	x, aFloat := a.(float64)
	y, bFloat := b.(float64)
	if n, whole := a.(int64); whole && bFloat {
		return float64(n) == y
	}
	if n, whole := b.(int64); whole && aFloat {
		return x == float64(n)
	}
	return reflect.DeepEqual(a, b)
}

func sameQuantity(a, b any) bool {
	x, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && x.Cmp(y) == 0
}

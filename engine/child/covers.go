// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
)

// covers reports whether live has everything that desired has. What live has besides belongs to
// others or to the server's defaults.
func covers(desired, live any, quantities bool) bool {
	switch want := desired.(type) {
	case map[string]any:
		has, ok := live.(map[string]any)
		if !ok {
			return live == nil && len(want) == 0
		}
		for key, value := range want {
			if !covers(value, has[key], quantities || holdsQuantities(key)) {
				return false
			}
		}
		return true
	case []any:
		has, ok := live.([]any)
		if !ok {
			return live == nil && len(want) == 0
		}
		return coversList(want, has, quantities)
	case nil:
		return live == nil
	}
	return sameScalar(desired, live) || quantities && sameQuantity(desired, live)
}

// coversList compares in order when the lists are of one length. Otherwise live may have entries
// of others: then each wanted one must be found, by its name where entries have one.
func coversList(want, has []any, quantities bool) bool {
	if len(want) > len(has) {
		return false
	}
	if len(want) == len(has) {
		ordered := true
		for i := range want {
			ordered = ordered && covers(want[i], has[i], quantities)
		}
		if ordered {
			return true
		}
	}
	for _, w := range want {
		if !found(w, has, quantities) {
			return false
		}
	}
	return true
}

func found(want any, has []any, quantities bool) bool {
	entry, isMap := want.(map[string]any)
	for _, h := range has {
		other, _ := h.(map[string]any)
		if isMap && (entry["name"] == nil || other["name"] != entry["name"]) {
			continue
		}
		if covers(want, h, quantities) {
			return true
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
	y, bInt := b.(int64)
	if aFloat && bInt {
		return x == float64(y)
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

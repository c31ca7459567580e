// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// Covers reports whether live has everything in desired. Additional values in live belong to others or to the
// server's defaults.
func Covers(desired, live *unstructured.Unstructured) bool {
	return knowing(desired.GroupVersionKind().GroupKind()).covers("", desired.Object, live.Object, false)
}

// covers compares the values of a key; entries of a list have the key of the list. If it is not sure, it returns
// false: that costs a request, and the applier remembers that it changed nothing.
func (k knowledge) covers(key string, desired, live any, quantities bool) bool {
	switch want := desired.(type) {
	case map[string]any:
		has, ok := live.(map[string]any)
		return ok && k.coversMap(key, want, has, quantities) || live == nil && len(want) == 0
	case []any:
		has, ok := live.([]any)
		return ok && k.coversList(key, want, has, quantities) || live == nil && len(want) == 0
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
		if !k.covers(field, value, has[field], quantities || k.isQuantity(key, field)) {
			return false
		}
	}
	return true
}

// coversList compares in order if the lists have the same length. Otherwise, for lists that may have entries of
// others, each wanted entry must be found.
func (k knowledge) coversList(key string, want, has []any, quantities bool) bool {
	if slices.EqualFunc(want, has, func(w, h any) bool { return k.covers(key, w, h, quantities) }) {
		return true
	}
	missing := func(w any) bool {
		return !slices.ContainsFunc(has, func(h any) bool { return k.joins(key, w, h) && k.covers(key, w, h, quantities) })
	}
	return len(want) <= len(has) && !slices.ContainsFunc(want, missing)
}

// joins reports whether an entry of a shared list is the wanted one.
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

// knowledge is the knowledge about a kind beyond its objects: how the server rewrites values, and which lists others may
// add to. It is empty for kinds of CRDs; their lists of named entries count as shared.
type knowledge struct {
	builtin bool
	// lists are the shared lists, each with the keys that identify an entry; the first key that an entry has
	// counts. In all other lists an additional entry is a difference, as in the rules of a Role or the arguments of
	// a container.
	lists map[string][]string
}

// sharedLists are the lists that others may add to, of kinds that have pods in them, of Services
// and of ServiceAccounts. In other built-in kinds there are none that a child would have.
func sharedLists() map[string][]string {
	name := []string{"name"}
	return map[string][]string{
		"containers": name, "initContainers": name, "ephemeralContainers": name, "env": name, "volumes": name,
		"imagePullSecrets": name, "secrets": name, "schedulingGates": name, "resourceClaims": name, "claims": name,
		"ports": {"containerPort", "port"}, "volumeMounts": {"mountPath"}, "volumeDevices": {"devicePath"},
		"hostAliases": {"ip"}, "topologySpreadConstraints": {"topologyKey"}, "ownerReferences": {"uid"},
	}
}

func knowing(kind schema.GroupKind) knowledge {
	switch {
	case kind.Group == "", kind.Group == "apps", kind.Group == "batch":
		return knowledge{builtin: true, lists: sharedLists()}
	case dsl.BuiltIn(kind.Group):
		return knowledge{builtin: true, lists: map[string][]string{"ownerReferences": {"uid"}}}
	}
	return knowledge{}
}

// isQuantity reports whether the value of a field is a quantity, or a map of quantities, which the server rewrites:
// 1000m becomes 1. Key is the key of the map that has the field.
func (k knowledge) isQuantity(key, field string) bool {
	switch field {
	case "requests", "limits", "hard", "capacity": // maps of quantities
		return true
	case "averageValue", "sizeLimit", "divisor":
		return k.builtin
	case "value":
		return k.builtin && key == "target"
	}
	return false
}

// leavesOut reports whether the server does not store this value of a field, because it equals a missing field. Key
// is the key of the map that has the field.
func (k knowledge) leavesOut(key, field string, value any) bool {
	if !k.builtin {
		return false
	}
	switch value.(type) {
	case string:
		return value == "" && (key == "env" && field == "value" || key == "volumeMounts" && field == "subPath")
	case bool:
		return value == false && slices.Contains([]string{"readOnly", "hostNetwork", "hostPID", "hostIPC", "paused",
			"stdin", "stdinOnce", "tty", "publishNotReadyAddresses"}, field)
	case int64:
		return value == int64(0) && slices.Contains([]string{"initialDelaySeconds", "minReadySeconds", "hostPort"}, field)
	}
	return false
}

// free reports whether a map in the template has free keys, like labels, and not the fields of a type; key is its
// key. For kinds of CRDs that is not known.
func (k knowledge) free(key string, want map[string]any) bool {
	switch key {
	case "labels", "annotations", "data", "binaryData", "matchLabels", "nodeSelector", "limits", "requests", "overhead",
		"hard", "capacity", "parameters", "volumeAttributes", "selector":
	default:
		return false
	}
	for _, value := range want {
		switch value.(type) {
		case map[string]any, []any: // the selector of a Deployment has fields
			return false
		}
	}
	return k.builtin
}

// replaced reports whether server-side apply replaces a value as a whole. One field of managedFields then stands
// for all of it, as it also does for a manager that only created the list or map.
func (k knowledge) replaced(field string, want any) bool {
	switch want.(type) {
	case []any:
		return !k.builtin
	case map[string]any:
		return k.builtin && (field == "selector" || field == "nodeSelector" || field == "matchLabels")
	}
	return false
}

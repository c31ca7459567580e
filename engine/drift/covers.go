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

// Covers reports whether live has everything that desired has. What live has besides belongs
// to others or to the server's defaults.
func Covers(desired, live *unstructured.Unstructured) bool {
	return knowing(desired.GroupVersionKind().GroupKind()).covers("", desired.Object, live.Object, false)
}

// covers compares the values of a key, which entries of a list have from the list. Where it cannot be sure it sees a difference: that costs a
// request, of which the applier remembers that it changed nothing.
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

// coversList compares in order when the lists are of one length. Otherwise live may have entries
// of others, where that can be: then each wanted one must be found.
func (k knowledge) coversList(key string, want, has []any, quantities bool) bool {
	if slices.EqualFunc(want, has, func(w, h any) bool { return k.covers(key, w, h, quantities) }) {
		return true
	}
	missing := func(w any) bool {
		return !slices.ContainsFunc(has, func(h any) bool { return k.joins(key, w, h) && k.covers(key, w, h, quantities) })
	}
	return len(want) <= len(has) && !slices.ContainsFunc(want, missing)
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

// knowledge is what is known of a kind beyond what any object shows: how the server writes values
// down, and which lists others may add to. Of kinds from CRDs nothing is known; their lists of named
// entries are taken for ones that others may add to.
type knowledge struct {
	builtin bool
	// lists are those that others may add to, with the keys of which the first that an entry has
	// tells it from others. In all other lists another entry is a difference, as in the rules of a
	// Role or the arguments of a container.
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

// isQuantity reports whether the value of a field is a quantity, or a map of them, which the server rewrites: 1000m
// becomes 1; key is that of the map it is in.
func (k knowledge) isQuantity(key, field string) bool {
	switch field {
	case "requests", "limits", "hard", "capacity": // maps of them
		return true
	case "averageValue", "sizeLimit", "divisor":
		return k.builtin
	case "value":
		return k.builtin && key == "target"
	}
	return false
}

// leavesOut reports whether the server does not write down this value of a field, because it is that
// of an object without the field; key is that of the map it is in.
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

// free reports whether a map that the template has is one of keys that anybody may choose, as labels are, and not of the
// fields of a type; key is that of the map. Of kinds from CRDs that is not known.
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

// replaced reports whether server-side apply replaces a value as a whole: then one field of managedFields stands for all
// of it, as it does where somebody has but made the list or map.
func (k knowledge) replaced(field string, want any) bool {
	switch want.(type) {
	case []any:
		return !k.builtin
	case map[string]any:
		return k.builtin && (field == "selector" || field == "nodeSelector" || field == "matchLabels")
	}
	return false
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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

// builtinGroups are the API groups of Kubernetes that have a dot.
func builtinGroups() []string {
	return []string{"networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io",
		"coordination.k8s.io", "discovery.k8s.io", "node.k8s.io", "admissionregistration.k8s.io",
		"apiextensions.k8s.io", "apiregistration.k8s.io", "certificates.k8s.io", "events.k8s.io"}
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
	case !strings.Contains(kind.Group, "."), slices.Contains(builtinGroups(), kind.Group):
		return knowledge{builtin: true, lists: map[string][]string{"ownerReferences": {"uid"}}}
	}
	return knowledge{}
}

// isQuantity reports whether the value of a field is a quantity; key is that of the map it is in.
func (k knowledge) isQuantity(key, field string) bool {
	switch field {
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

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// marked stands after the name of the class that objects without one get.
const marked = " (default)"

// phase is that of the status, unless the object is being deleted.
func phase(o map[string]any) any {
	if at(o, "metadata.deletionTimestamp") != nil {
		return "Terminating"
	}
	return text(o, "status.phase")
}

// modes are the short forms of access modes, in a fixed order.
func modes(value any) string {
	list, _ := value.([]any)
	var out []string
	for _, mode := range [][2]string{{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}} {
		if slices.Contains(list, any(mode[0])) {
			out = append(out, mode[1])
		}
	}
	return strings.Join(out, ",")
}

// claimCapacity is that of the volume that a claim has.
func claimCapacity(o map[string]any) any {
	if text(o, "spec.volumeName") == "" {
		return ""
	}
	return textOr(o, "status.capacity.storage", "0")
}

func claimModes(o map[string]any) any {
	if text(o, "spec.volumeName") == "" {
		return ""
	}
	return modes(at(o, "status.accessModes"))
}

// storageClass is the class of a claim or a volume: first that of the old annotation.
func storageClass(o map[string]any) any {
	if class := annotation(o, "volume.beta.kubernetes.io/storage-class"); class != "" {
		return class
	}
	return text(o, "spec.storageClassName")
}

// claim is the claim that has a volume.
func claim(o map[string]any) any {
	if at(o, "spec.claimRef") == nil {
		return ""
	}
	return text(o, "spec.claimRef.namespace") + "/" + text(o, "spec.claimRef.name")
}

// claimState is the state of a ResourceClaim.
func claimState(o map[string]any) any {
	var out []string
	deleted, allocated := at(o, "metadata.deletionTimestamp") != nil, at(o, "status.allocation") != nil
	if deleted {
		out = append(out, "deleted")
	}
	if !allocated && !deleted {
		out = append(out, "pending")
	}
	if allocated {
		out = append(out, "allocated")
		if count(at(o, "status.reservedFor")) > 0 {
			out = append(out, "reserved")
		}
	}
	return strings.Join(out, ",")
}

// tokenAudiences are those of the tokens that a CSI driver gets.
func tokenAudiences(o map[string]any) any {
	if at(o, "spec.tokenRequests") == nil {
		return "<unset>"
	}
	return joined(o, "spec.tokenRequests", "audience")
}

func lifecycleModes(o map[string]any) any {
	if out := joined(o, "spec.volumeLifecycleModes", ""); out != "" {
		return out
	}
	return "<none>"
}

// quota has the used and the hard amounts of a ResourceQuota: those of limits, or all others.
func quota(o map[string]any, limits bool) any {
	hard, _ := at(o, "status.hard").(map[string]any)
	used, _ := at(o, "status.used").(map[string]any)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		if strings.HasPrefix(name, "limits.") != limits {
			continue
		}
		now := used[name]
		if now == nil {
			now = "0"
		}
		out = append(out, fmt.Sprintf("%s: %v/%v", name, now, hard[name]))
	}
	return strings.Join(out, ", ")
}

// MarkDefault returns the columns of a list of StorageClasses, which mark the class that claims without one get: the newest
// of those that say so.
func MarkDefault(columns []Column, classes []map[string]any) []Column {
	chosen, since := "", ""
	for _, class := range classes {
		created, name := text(class, "metadata.creationTimestamp"), text(class, "metadata.name")
		if !isDefault(class) {
			continue
		}
		if chosen == "" || created > since || created == since && name < chosen {
			chosen, since = name, created
		}
	}
	out := slices.Clone(columns)
	plain := out[0].cell
	out[0].cell = func(o map[string]any, now time.Time) any {
		if chosen != "" && text(o, "metadata.name") == chosen {
			return chosen + marked
		}
		return plain(o, now)
	}
	return out
}

// isDefault reports whether a StorageClass says that it is the default one.
func isDefault(class map[string]any) bool {
	return annotation(class, "storageclass.kubernetes.io/is-default-class") == "true" ||
		annotation(class, "storageclass.beta.kubernetes.io/is-default-class") == "true"
}

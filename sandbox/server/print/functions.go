// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"fmt"
	"slices"
	"strings"
)

// timed are the cells that say how long something took or is ago.
var timed = map[string]cell{"restarts": restarts, "took": took, "lastSeen": lastSeen, "firstSeen": firstSeen}

// functions are the other cells that are more than a field.
var functions = map[string]func(map[string]any) any{
	"podReady": podReady, "podStatus": podStatus, "podIP": podIP, "readinessGates": readinessGates,
	"clusterIP": clusterIP, "externalIP": externalIP, "ports": ports, "addresses": addresses, "hosts": hosts, "ingressPorts": ingressPorts,
	"ingressClassName": ingressClassName, "classParameters": classParameters, "addressParent": addressParent,
	"endpoints": endpoints, "slicePorts": slicePorts, "sliceEndpoints": sliceEndpoints,
	"nodeStatus": nodeStatus, "roles": roles, "kernel": kernel,
	"internalAddress":  func(o map[string]any) any { return address(o, "InternalIP") },
	"externalAddress":  func(o map[string]any) any { return address(o, "ExternalIP") },
	"componentStatus":  componentStatus,
	"componentMessage": func(o map[string]any) any { return text(condition(o, "conditions", "Healthy"), "message") },
	"componentError":   func(o map[string]any) any { return text(condition(o, "conditions", "Healthy"), "error") },
	"quotaRequests":    func(o map[string]any) any { return quota(o, false) },
	"quotaLimits":      func(o map[string]any) any { return quota(o, true) },
	"phase":            phase, "claim": claim, "storageClass": storageClass,
	"claimCapacity": claimCapacity, "claimModes": claimModes, "claimState": claimState,
	"volumeCapacity": func(o map[string]any) any { return textOr(o, "spec.capacity.storage", "0") },
	"volumeModes":    func(o map[string]any) any { return modes(at(o, "spec.accessModes")) },
	"tokenAudiences": tokenAudiences, "lifecycleModes": lifecycleModes,
	"involved": involved, "eventSource": eventSource, "eventCount": eventCount,
	"eventMessage": func(o map[string]any) any { return strings.TrimSpace(text(o, "message")) },
	"paramKind":    paramKind, "paramRef": paramRef,
	"apiService": apiService, "apiAvailable": apiAvailable, "controller": controller,
	"ready": func(o map[string]any) any {
		return fmt.Sprintf("%d/%d", number(o, "status.readyReplicas"), number(o, "spec.replicas"))
	},
	"targets": targets,
	"scaled": func(o map[string]any) any {
		return text(o, "spec.scaleTargetRef.kind") + "/" + text(o, "spec.scaleTargetRef.name")
	},
	"jobStatus": jobStatus, "completions": completions, "suspend": suspended,
	"certificateStatus": certificateStatus, "certificateDuration": certificateDuration, "podCertificateState": podCertificateState,
	"missingLevel": func(o map[string]any) any {
		return textOr(condition(o, "status.conditions", "Dangling"), "status", "?")
	},
	"role":           func(o map[string]any) any { return text(o, "roleRef.kind") + "/" + text(o, "roleRef.name") },
	"users":          func(o map[string]any) any { return subjects(o, "User") },
	"groups":         func(o map[string]any) any { return subjects(o, "Group") },
	"accounts":       func(o map[string]any) any { return subjects(o, "ServiceAccount") },
	"servedVersions": servedVersions, "established": func(o map[string]any) any { return holds(o, "Established") },
	"migrated": migrated, "migrationStatus": migrationStatus,
}

// componentStatus is the health of a part of the control plane.
func componentStatus(o map[string]any) any {
	switch healthy := condition(o, "conditions", "Healthy"); {
	case healthy == nil:
		return "Unknown"
	case text(healthy, "status") == "True":
		return "Healthy"
	}
	return "Unhealthy"
}

// apiService is the Service that serves an API, or Local.
func apiService(o map[string]any) any {
	if at(o, "spec.service") == nil {
		return "Local"
	}
	return text(o, "spec.service.namespace") + "/" + text(o, "spec.service.name")
}

func apiAvailable(o map[string]any) any {
	available := condition(o, "status.conditions", "Available")
	status, reason := textOr(available, "status", "Unknown"), text(available, "reason")
	if status != "True" && reason != "" {
		return status + " (" + reason + ")"
	}
	return status
}

// controller is the owner that controls an object, as kind.group/name.
func controller(o map[string]any) any {
	for _, owner := range each(o, "metadata.ownerReferences") {
		if owner["controller"] != true {
			continue
		}
		kind := strings.ToLower(text(owner, "kind"))
		if group, _, found := strings.Cut(text(owner, "apiVersion"), "/"); found {
			kind += "." + group
		}
		return kind + "/" + text(owner, "name")
	}
	return "<none>"
}

func paramKind(o map[string]any) any {
	if at(o, "spec.paramKind") == nil {
		return "<unset>"
	}
	return text(o, "spec.paramKind.apiVersion") + "/" + text(o, "spec.paramKind.kind")
}

// paramRef names the parameters of a policy; a star stands for the namespace of the object at hand.
func paramRef(o map[string]any) any {
	name, chosen := text(o, "spec.paramRef.name"), at(o, "spec.paramRef.selector")
	switch {
	case name != "":
		return textOr(o, "spec.paramRef.namespace", "*") + "/" + name
	case chosen != nil:
		return selectorOf(chosen).String()
	}
	return "<unset>"
}

// migrated is the resource that is migrated, as plural.group.
func migrated(o map[string]any) any {
	if group := text(o, "spec.resource.group"); group != "" {
		return text(o, "spec.resource.resource") + "." + group
	}
	return text(o, "spec.resource.resource")
}

func migrationStatus(o map[string]any) any {
	out := "Unknown"
	for _, c := range each(o, "status.conditions") {
		switch kind := text(c, "type"); kind {
		case "Running", "Failed", "Succeeded":
			if text(c, "status") == "True" {
				out = kind
			}
		}
	}
	return out
}

// servedVersions are those of a CRD, with a mark of the stored one.
func servedVersions(o map[string]any) any {
	var out []string
	for _, version := range each(o, "spec.versions") {
		name := text(version, "name")
		if version["storage"] == true {
			name += "(storage)"
		}
		if version["served"] == true {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

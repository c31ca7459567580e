// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// builtin has the columns of the built-in resources after the name.
const builtin = `
/pods Ready:podReady; Status:podStatus; Restarts:restarts; Age:; +IP:status.podIP|<none>; +Node:spec.nodeName|<none>; +Nominated Node:status.nominatedNodeName|<none>; +Readiness Gates:none
/services Type:spec.type; Cluster-IP:spec.clusterIP|<none>; External-IP:externalIP; Port(s):ports; Age:; +Selector:selector
/nodes Status:nodeStatus; Roles:roles; Age:; Version:status.nodeInfo.kubeletVersion; +Internal-IP:internalAddress; +External-IP:externalAddress; +OS-Image:status.nodeInfo.osImage|<unknown>; +Kernel-Version:status.nodeInfo.kernelVersion|<unknown>; +Container-Runtime:status.nodeInfo.containerRuntimeVersion|<unknown>
/namespaces Status:status.phase; Age:
/configmaps Data:%data; Age:
/secrets Type:type; Data:%data; Age:
/serviceaccounts Age:
/persistentvolumeclaims Status:phase; Volume:spec.volumeName; Capacity:status.capacity.storage; Access Modes:statusModes; StorageClass:spec.storageClassName; VolumeAttributesClass:spec.volumeAttributesClassName|<unset>; Age:; +VolumeMode:spec.volumeMode|<unset>
/persistentvolumes Capacity:spec.capacity.storage; Access Modes:specModes; Reclaim Policy:spec.persistentVolumeReclaimPolicy; Status:phase; Claim:claim; StorageClass:spec.storageClassName; VolumeAttributesClass:spec.volumeAttributesClassName|<unset>; Reason:status.reason; Age:; +VolumeMode:spec.volumeMode|<unset>
/events Last Seen:lastSeen; Type:type; Reason:reason; Object:involved; +Subobject:involvedObject.fieldPath; +Source:source.component; Message:message; +First Seen:firstSeen; +Count:#count; +Name:metadata.name
apps/deployments Ready:ready; Up-to-date:#status.updatedReplicas; Available:#status.availableReplicas; Age:; +Containers:containers; +Images:images; +Selector:matchLabels
apps/replicasets Desired:#spec.replicas; Current:#status.replicas; Ready:#status.readyReplicas; Age:; +Containers:containers; +Images:images; +Selector:matchLabels
apps/statefulsets Ready:ready; Age:; +Containers:containers; +Images:images
apps/daemonsets Desired:#status.desiredNumberScheduled; Current:#status.currentNumberScheduled; Ready:#status.numberReady; Up-to-date:#status.updatedNumberScheduled; Available:#status.numberAvailable; Node Selector:nodeSelector; Age:; +Containers:containers; +Images:images; +Selector:matchLabels
autoscaling/horizontalpodautoscalers Reference:scaled; Targets:targets; MinPods:spec.minReplicas|<unset>; MaxPods:maxPods; Replicas:scaledNow; Age:
batch/jobs Status:jobStatus; Completions:completions; Duration:took; Age:; +Containers:containers; +Images:images; +Selector:matchLabels
batch/cronjobs Schedule:spec.schedule; Timezone:spec.timeZone|<none>; Suspend:suspend; Active:%status.active; Last Schedule:lastSchedule; Age:
networking.k8s.io/ingresses Class:spec.ingressClassName|<none>; Hosts:hosts; Address:addresses; Ports:ingressPorts; Age:
networking.k8s.io/networkpolicies Pod-Selector:podSelector; Age:
coordination.k8s.io/leases Holder:spec.holderIdentity; Age:
rbac.authorization.k8s.io/rolebindings Role:role; Age:; +Users:users; +Groups:groups; +ServiceAccounts:accounts
rbac.authorization.k8s.io/clusterrolebindings Role:role; Age:; +Users:users; +Groups:groups; +ServiceAccounts:accounts`

// functions are the cells that are more than a field.
var functions = map[string]func(map[string]any) any{
	"none":     func(map[string]any) any { return "<none>" },
	"podReady": podReady, "podStatus": podStatus, "restarts": restarts,
	"externalIP": externalIP, "ports": ports, "nodeStatus": nodeStatus, "roles": roles, "phase": phase,
	"jobStatus": jobStatus, "completions": completions, "took": took, "hosts": hosts,
	"selector":     func(o map[string]any) any { return pairs(at(o, "spec.selector")) },
	"matchLabels":  func(o map[string]any) any { return pairs(at(o, "spec.selector.matchLabels")) },
	"nodeSelector": func(o map[string]any) any { return pairs(at(o, "spec.template.spec.nodeSelector")) },
	"containers":   func(o map[string]any) any { return joined(o, "spec.template.spec.containers", "name") },
	"images":       func(o map[string]any) any { return joined(o, "spec.template.spec.containers", "image") },
	"addresses":    func(o map[string]any) any { return addresses(o) },
	"statusModes":  func(o map[string]any) any { return modes(at(o, "status.accessModes")) },
	"specModes":    func(o map[string]any) any { return modes(at(o, "spec.accessModes")) },
	"lastSeen":     func(o map[string]any) any { return seen(o, "series.lastObservedTime", "lastTimestamp", "eventTime") },
	"firstSeen":    func(o map[string]any) any { return seen(o, "firstTimestamp", "eventTime") },
	"lastSchedule": lastSchedule,
	"suspend":      suspended,
	"users":        func(o map[string]any) any { return subjects(o, "User") },
	"groups":       func(o map[string]any) any { return subjects(o, "Group") },
	"accounts":     func(o map[string]any) any { return subjects(o, "ServiceAccount") },
	"ready": func(o map[string]any) any {
		return fmt.Sprintf("%d/%d", number(o, "status.readyReplicas"), number(o, "spec.replicas"))
	},
	"podSelector":     func(o map[string]any) any { return pairs(at(o, "spec.podSelector.matchLabels")) },
	"internalAddress": func(o map[string]any) any { return address(o, "InternalIP") },
	"externalAddress": func(o map[string]any) any { return address(o, "ExternalIP") },
	"role":            func(o map[string]any) any { return text(o, "roleRef.kind") + "/" + text(o, "roleRef.name") },
	"involved": func(o map[string]any) any {
		return strings.ToLower(text(o, "involvedObject.kind")) + "/" + text(o, "involvedObject.name")
	},
	"claim": func(o map[string]any) any {
		if name := text(o, "spec.claimRef.name"); name != "" {
			return text(o, "spec.claimRef.namespace") + "/" + name
		}
		return ""
	},
	"targets": targets,
	"scaled": func(o map[string]any) any {
		return text(o, "spec.scaleTargetRef.kind") + "/" + text(o, "spec.scaleTargetRef.name")
	},
	"maxPods":   func(o map[string]any) any { return number(o, "spec.maxReplicas") },
	"scaledNow": func(o map[string]any) any { return number(o, "status.currentReplicas") },
	"ingressPorts": func(o map[string]any) any {
		if len(each(o, "spec.tls")) > 0 {
			return "80, 443"
		}
		return "80"
	},
}

func joined(o map[string]any, list, field string) string {
	var out []string
	for _, item := range each(o, list) {
		out = append(out, text(item, field))
	}
	return strings.Join(out, ",")
}

// subjects are the names of those subjects of a binding that are of a kind.
func subjects(o map[string]any, kind string) string {
	var out []string
	for _, subject := range each(o, "subjects") {
		switch {
		case text(subject, "kind") != kind:
		case kind == "ServiceAccount":
			out = append(out, text(subject, "namespace")+"/"+text(subject, "name"))
		default:
			out = append(out, text(subject, "name"))
		}
	}
	return strings.Join(out, ", ")
}

// suspended has the capital letter that the API server prints.
func suspended(o map[string]any) any {
	if at(o, "spec.suspend") == true {
		return "True"
	}
	return "False"
}

func seen(o map[string]any, paths ...string) string {
	for _, path := range paths {
		if when := text(o, path); when != "" {
			return age(when)
		}
	}
	return "<unknown>"
}

func lastSchedule(o map[string]any) any {
	if when := text(o, "status.lastScheduleTime"); when != "" {
		return age(when)
	}
	return "<none>"
}

// phase is that of the status, unless the object is being deleted.
func phase(o map[string]any) any {
	if at(o, "metadata.deletionTimestamp") != nil {
		return "Terminating"
	}
	return text(o, "status.phase")
}

func modes(value any) string {
	short := map[any]string{"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
	list, _ := value.([]any)
	var out []string
	for _, mode := range list {
		out = append(out, short[mode])
	}
	return strings.Join(out, ",")
}

func addresses(o map[string]any) string {
	var out []string
	for _, item := range each(o, "status.loadBalancer.ingress") {
		if ip := text(item, "ip"); ip != "" {
			out = append(out, ip)
		} else if name := text(item, "hostname"); name != "" {
			out = append(out, name)
		}
	}
	return strings.Join(out, ",")
}

func externalIP(o map[string]any) any {
	switch text(o, "spec.type") {
	case "ExternalName":
		return text(o, "spec.externalName")
	case "LoadBalancer":
		if out := addresses(o); out != "" {
			return out
		}
		return "<pending>"
	}
	if list, _ := at(o, "spec.externalIPs").([]any); len(list) > 0 {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ","), "[]")
	}
	return "<none>"
}

func ports(o map[string]any) any {
	var out []string
	for _, p := range each(o, "spec.ports") {
		protocol, port := text(p, "protocol"), fmt.Sprint(number(p, "port"))
		if protocol == "" {
			protocol = "TCP"
		}
		if node := number(p, "nodePort"); node > 0 {
			port += fmt.Sprint(":", node)
		}
		out = append(out, port+"/"+protocol)
	}
	if len(out) == 0 {
		return "<none>"
	}
	return strings.Join(out, ",")
}

func nodeStatus(o map[string]any) any {
	out := "Unknown"
	for _, c := range each(o, "status.conditions") {
		if text(c, "type") != "Ready" {
			continue
		}
		if out = "NotReady"; text(c, "status") == "True" {
			out = "Ready"
		}
	}
	if at(o, "spec.unschedulable") == true {
		out += ",SchedulingDisabled"
	}
	return out
}

// address is that of a node.
func address(o map[string]any, kind string) string {
	for _, a := range each(o, "status.addresses") {
		if text(a, "type") == kind {
			return text(a, "address")
		}
	}
	return "<none>"
}

func roles(o map[string]any) any {
	labels, _ := at(o, "metadata.labels").(map[string]any)
	var out []string
	for key := range labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok && role != "" {
			out = append(out, role)
		}
	}
	if slices.Sort(out); len(out) == 0 {
		return "<none>"
	}
	return strings.Join(out, ",")
}

func hosts(o map[string]any) any {
	var out []string
	for _, r := range each(o, "spec.rules") {
		if host := text(r, "host"); host != "" {
			out = append(out, host)
		}
	}
	if len(out) == 0 {
		return "*"
	}
	return strings.Join(out, ",")
}

func jobStatus(o map[string]any) any {
	for _, c := range each(o, "status.conditions") {
		switch kind := text(c, "type"); kind {
		case "Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet":
			if text(c, "status") == "True" {
				return kind
			}
		}
	}
	if at(o, "metadata.deletionTimestamp") != nil {
		return "Terminating"
	}
	return "Running"
}

func completions(o map[string]any) any {
	want, done := at(o, "spec.completions"), number(o, "status.succeeded")
	if want != nil {
		return fmt.Sprintf("%d/%v", done, want)
	}
	if n := number(o, "spec.parallelism"); n > 1 {
		return fmt.Sprintf("%d/1 of %d", done, n)
	}
	return fmt.Sprintf("%d/1", done)
}

func took(o map[string]any) any {
	start, err := time.Parse(time.RFC3339, text(o, "status.startTime"))
	if err != nil {
		return ""
	}
	end, err := time.Parse(time.RFC3339, text(o, "status.completionTime"))
	if err != nil {
		end = time.Now()
	}
	return duration.HumanDuration(end.Sub(start))
}

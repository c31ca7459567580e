// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// staged returns the line of a write by which a workload comes alive, if its state has changed as people see it.
func (l *lines) staged(w write) line {
	name := object(w.Resource.Resource, w.Namespace, w.Name)
	state := stateOf(w)
	if w.code >= http.StatusBadRequest || state == "" || !l.news(name, state) {
		return line{} // a conflict is tried again, and what is refused for good is logged
	}
	return line{object: name, by: w.by, what: state, color: blue}
}

// news reports whether an object has another state than before.
func (l *lines) news(name, state string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stages[name] == state {
		return false
	}
	if l.stages[name] = state; state == gone {
		delete(l.stages, name)
	}
	return true
}

// gone is the state of an object that is not there any more.
const gone = "gone"

// stateOf returns the state of a workload as people see it; empty if that says nothing.
func stateOf(w write) string {
	o := w.after
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(o, path...)
		return value
	}
	switch w.Resource.Resource {
	case "pods":
		return podState(w)
	case "deployments", "statefulsets":
		return fmt.Sprintf("%d of %d replicas ready", count(o, "status", "readyReplicas"), count(o, "spec", "replicas"))
	case "daemonsets":
		return fmt.Sprintf("%d of %d Pods ready", count(o, "status", "numberReady"), count(o, "status", "desiredNumberScheduled"))
	case "jobs":
		for _, kind := range []string{"Complete", "Failed"} {
			if byType(at(o, "status", "conditions"))[kind]["status"] == "True" {
				return kind
			}
		}
	case "persistentvolumeclaims":
		return text("status", "phase")
	case "services", "ingresses":
		return address(o)
	}
	return ""
}

// podState is that of a Pod: its phase, whether it is ready, or why a container waits.
func podState(w write) string {
	if w.after == nil {
		return gone
	}
	if deleted(w.after) {
		return "Terminating"
	}
	statuses, _ := at(w.after, "status", "containerStatuses").([]any)
	for _, status := range statuses {
		tree, _ := status.(map[string]any)
		if reason, _ := at(tree, "state", "waiting", "reason").(string); reason != "" && reason != "ContainerCreating" {
			return reason
		}
	}
	phase, _ := at(w.after, "status", "phase").(string)
	ready := byType(at(w.after, "status", "conditions"))["Ready"]["status"] == "True"
	switch {
	case phase == "Pending" || phase == "Running" && !ready:
		return ""
	case phase == "Running":
		return "Running, ready"
	}
	return phase
}

// address is that of a load balancer.
func address(o map[string]any) string {
	list, _ := at(o, "status", "loadBalancer", "ingress").([]any)
	for _, item := range list {
		tree, _ := item.(map[string]any)
		if ip, _ := tree["ip"].(string); ip != "" {
			return "has the address " + ip
		}
	}
	return ""
}

// at returns the value at a path; nil if the object lacks it.
func at(o map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o, path...)
	return value
}

// count returns the number at a path; 0 if the object lacks it. Numbers of JSON are floating point numbers.
func count(o map[string]any, path ...string) int64 {
	switch value := at(o, path...).(type) {
	case int64:
		return value
	case float64:
		return int64(value)
	}
	return 0
}

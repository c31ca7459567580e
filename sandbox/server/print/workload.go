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

// jobStatus is the first condition that holds, in the order in which they matter.
func jobStatus(o map[string]any) any {
	switch {
	case holds(o, "Complete"):
		return "Complete"
	case holds(o, "Failed"):
		return "Failed"
	case at(o, "metadata.deletionTimestamp") != nil:
		return "Terminating"
	}
	for _, kind := range []string{"Suspended", "FailureTarget", "SuccessCriteriaMet"} {
		if holds(o, kind) {
			return kind
		}
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

func took(o map[string]any, now time.Time) any {
	start, err := time.Parse(time.RFC3339, text(o, "status.startTime"))
	if err != nil {
		return ""
	}
	end, err := time.Parse(time.RFC3339, text(o, "status.completionTime"))
	if err != nil {
		end = now
	}
	return duration.HumanDuration(end.Sub(start))
}

// suspended has the capital letter that the API server prints.
func suspended(o map[string]any) any {
	switch at(o, "spec.suspend") {
	case nil:
		return "<unset>"
	case true:
		return "True"
	}
	return "False"
}

func nodeStatus(o map[string]any) any {
	out := "Unknown"
	if ready := condition(o, "status.conditions", "Ready"); ready != nil {
		if out = "NotReady"; text(ready, "status") == "True" {
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

// kernel is the version of a node's kernel with its architecture.
func kernel(o map[string]any) any {
	out := textOr(o, "status.nodeInfo.kernelVersion", "<unknown>")
	if architecture := text(o, "status.nodeInfo.architecture"); architecture != "" {
		out += " (" + architecture + ")"
	}
	return out
}

func roles(o map[string]any) any {
	all, _ := at(o, "metadata.labels").(map[string]any)
	var out []string
	for key, value := range all {
		role, found := strings.CutPrefix(key, "node-role.kubernetes.io/")
		if key == "kubernetes.io/role" {
			role, found = fmt.Sprint(value), true
		}
		if found && role != "" {
			out = append(out, role)
		}
	}
	if slices.Sort(out); len(out) == 0 {
		return "<none>"
	}
	return strings.Join(slices.Compact(out), ",")
}

func firstSeen(o map[string]any, now time.Time) any {
	return age(textOr(o, "firstTimestamp", text(o, "eventTime")), now)
}

func lastSeen(o map[string]any, now time.Time) any {
	if at(o, "series") != nil {
		return age(at(o, "series.lastObservedTime"), now)
	}
	if when := text(o, "lastTimestamp"); when != "" {
		return age(when, now)
	}
	return firstSeen(o, now)
}

func eventCount(o map[string]any) any {
	if at(o, "series") != nil {
		return number(o, "series.count")
	}
	return max(number(o, "count"), 1)
}

// involved is the object of an Event, as kind/name.
func involved(o map[string]any) any {
	kind := strings.ToLower(text(o, "involvedObject.kind"))
	if name := text(o, "involvedObject.name"); name != "" {
		return kind + "/" + name
	}
	return kind
}

// eventSource is the component that wrote an Event, with its host or instance.
func eventSource(o map[string]any) any {
	component := textOr(o, "source.component", text(o, "reportingComponent"))
	if instance := textOr(o, "source.host", text(o, "reportingInstance")); instance != "" {
		return component + ", " + instance
	}
	return component
}

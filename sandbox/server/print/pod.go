// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sidecars are the names of the init containers that go on beside the others.
func sidecars(o map[string]any) (out []string) {
	for _, c := range each(o, "spec.initContainers") {
		if text(c, "restartPolicy") == "Always" {
			out = append(out, text(c, "name"))
		}
	}
	return out
}

// podReady counts the ready containers. A sidecar counts from the moment that it has started until it ends.
func podReady(o map[string]any) any {
	beside, ready := sidecars(o), 0
	statuses, _, _ := initStatus(o)
	for _, c := range statuses {
		if slices.Contains(beside, text(c, "name")) && c["started"] == true && c["ready"] == true && at(c, "state.terminated") == nil {
			ready++
		}
	}
	for _, c := range each(o, "status.containerStatuses") {
		if begun(o) && c["ready"] == true && at(c, "state.running") != nil {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(each(o, "spec.containers"))+len(beside))
}

// begun reports whether the containers after the init containers count.
func begun(o map[string]any) bool {
	_, _, initializes := initStatus(o)
	return !initializes || holds(o, "Initialized")
}

// restarts are those of the init containers until these have ended, and then those of the others.
func restarts(o map[string]any, now time.Time) any {
	total, last := int64(0), ""
	add := func(c map[string]any) {
		total += number(c, "restartCount")
		last = max(last, text(c, "lastState.terminated.finishedAt"))
	}
	passed, _, _ := initStatus(o)
	for _, c := range passed {
		if !begun(o) || slices.Contains(sidecars(o), text(c, "name")) {
			add(c)
		}
	}
	if begun(o) {
		for _, c := range each(o, "status.containerStatuses") {
			add(c)
		}
	}
	if last != "" && total > 0 {
		return fmt.Sprintf("%d (%s ago)", total, age(last, now))
	}
	return fmt.Sprint(total)
}

// podStatus is the reason of the last container that has one, or the phase.
func podStatus(o map[string]any) any {
	out := textOr(o, "status.reason", text(o, "status.phase"))
	if text(condition(o, "status.conditions", "PodScheduled"), "reason") == "SchedulingGated" {
		out = "SchedulingGated"
	}
	if _, reason, initializes := initStatus(o); initializes {
		out = reason
	}
	if begun(o) {
		out = containerStatus(o, out)
	}
	switch deleted := at(o, "metadata.deletionTimestamp") != nil; {
	case deleted && text(o, "status.reason") == "NodeLost":
		return "Unknown"
	case deleted && text(o, "status.phase") != "Failed" && text(o, "status.phase") != "Succeeded":
		return "Terminating"
	}
	return out
}

// initStatus returns the init containers up to the first one that has neither ended well nor goes on as a sidecar, and its
// state. It reports whether there is one.
func initStatus(o map[string]any) (passed []map[string]any, reason string, initializes bool) {
	list, beside := each(o, "status.initContainerStatuses"), sidecars(o)
	for i, c := range list {
		waiting, ended := text(c, "state.waiting.reason"), at(c, "state.terminated")
		switch {
		case ended != nil && number(c, "state.terminated.exitCode") == 0,
			slices.Contains(beside, text(c, "name")) && c["started"] == true:
			continue
		case ended != nil:
			reason = "Init:" + reasonOf(c)
		case waiting != "" && waiting != "PodInitializing":
			reason = "Init:" + waiting
		default:
			reason = fmt.Sprintf("Init:%d/%d", i, len(each(o, "spec.initContainers")))
		}
		return list[:i+1], reason, true
	}
	return list, "", false
}

// containerStatus is the reason of the first container that has one. A completed one does not hide the others.
func containerStatus(o map[string]any, out string) string {
	running, failed := false, ""
	for _, c := range slices.Backward(each(o, "status.containerStatuses")) {
		switch waiting := text(c, "state.waiting.reason"); {
		case waiting != "":
			out = waiting
		case at(c, "state.terminated") != nil:
			out = reasonOf(c)
			if number(c, "state.terminated.exitCode") != 0 {
				failed = out
			}
		case c["ready"] == true && at(c, "state.running") != nil:
			running = true
		}
	}
	switch {
	case out != "Completed":
	case running && holds(o, "Ready"):
		return "Running"
	case failed != "":
		return failed
	case running:
		return "NotReady"
	}
	return out
}

// reasonOf is why a container has ended.
func reasonOf(c map[string]any) string {
	if reason := text(c, "state.terminated.reason"); reason != "" {
		return reason
	}
	if signal := number(c, "state.terminated.signal"); signal != 0 {
		return fmt.Sprintf("Signal:%d", signal)
	}
	return fmt.Sprintf("ExitCode:%d", number(c, "state.terminated.exitCode"))
}

func podIP(o map[string]any) any {
	for _, each := range each(o, "status.podIPs") {
		return textOr(each, "ip", "<none>")
	}
	return "<none>"
}

// readinessGates counts those whose conditions are True.
func readinessGates(o map[string]any) any {
	gates, met := each(o, "spec.readinessGates"), 0
	for _, gate := range gates {
		if holds(o, text(gate, "conditionType")) {
			met++
		}
	}
	if len(gates) == 0 {
		return "<none>"
	}
	return fmt.Sprintf("%d/%d", met, len(gates))
}

// Conditions returns the conditions of an object's row: a Pod can be completed.
func Conditions(group, plural string, o map[string]any) []metav1.TableRowCondition {
	if group != "" || plural != "pods" {
		return nil
	}
	phase, said := text(o, "status.phase"), ""
	switch phase {
	case "Succeeded":
		said = "The pod has completed successfully."
	case "Failed":
		said = "The pod failed."
	default:
		return nil
	}
	return []metav1.TableRowCondition{{Type: metav1.RowCompleted, Status: metav1.ConditionTrue, Reason: phase, Message: said}}
}

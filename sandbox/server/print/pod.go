// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"fmt"
	"slices"
)

func podReady(o map[string]any) any {
	ready := 0
	for _, c := range each(o, "status.containerStatuses") {
		if c["ready"] == true && at(c, "state.running") != nil {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, len(each(o, "spec.containers")))
}

func restarts(o map[string]any) any {
	total, last := int64(0), ""
	for _, c := range each(o, "status.containerStatuses") {
		total += number(c, "restartCount")
		last = max(last, text(c, "lastState.terminated.finishedAt"))
	}
	if last != "" && total > 0 {
		return fmt.Sprintf("%d (%s ago)", total, age(last))
	}
	return fmt.Sprint(total)
}

// podStatus is the reason of the last container that has one, or the phase.
func podStatus(o map[string]any) any {
	out := text(o, "status.phase")
	if reason := text(o, "status.reason"); reason != "" {
		out = reason
	}
	for _, c := range each(o, "status.conditions") {
		if text(c, "type") == "PodScheduled" && text(c, "reason") == "SchedulingGated" {
			out = "SchedulingGated"
		}
	}
	if init := initStatus(o); init != "" {
		out = init
	} else {
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

// initStatus is that of the first init container which has not ended well; empty if all have.
func initStatus(o map[string]any) string {
	list := each(o, "status.initContainerStatuses")
	for i, c := range list {
		reason := text(c, "state.waiting.reason")
		switch ended := at(c, "state.terminated"); {
		case ended != nil && number(c, "state.terminated.exitCode") == 0, c["started"] == true && c["ready"] == true:
			continue
		case ended != nil:
			return "Init:" + reasonOf(c)
		case reason != "" && reason != "PodInitializing":
			return "Init:" + reason
		}
		return fmt.Sprintf("Init:%d/%d", i, len(each(o, "spec.initContainers")))
	}
	return ""
}

func containerStatus(o map[string]any, out string) string {
	running := false
	for _, c := range slices.Backward(each(o, "status.containerStatuses")) {
		switch waiting := text(c, "state.waiting.reason"); {
		case waiting != "":
			out = waiting
		case at(c, "state.terminated") != nil:
			out = reasonOf(c)
		case c["ready"] == true && at(c, "state.running") != nil:
			running = true
		}
	}
	if out == "Completed" && running {
		return "Running"
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

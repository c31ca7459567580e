// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package print

import (
	"cmp"
	"fmt"
	"strings"
)

// shownTargets is how many targets of an autoscaler a column shows.
const shownTargets = 2

// sources are the members with what a metric is about, by its type.
var sources = map[string]string{
	"External": "external", "Pods": "pods", "Object": "object", "Resource": "resource", "ContainerResource": "containerResource",
}

// targets are what a HorizontalPodAutoscaler measures and aims at.
func targets(o map[string]any) any {
	measured, list := each(o, "status.currentMetrics"), []string(nil)
	for i, metric := range each(o, "spec.metrics") {
		now := map[string]any{}
		if i < len(measured) {
			now = measured[i]
		}
		list = append(list, targetOf(metric, now))
	}
	switch more := len(list) - shownTargets; {
	case len(list) == 0:
		return "<none>"
	case more > 0:
		return fmt.Sprintf("%s + %d more...", strings.Join(list[:shownTargets], ", "), more)
	}
	return strings.Join(list, ", ")
}

// targetOf is what one metric measures and aims at.
func targetOf(metric, measured map[string]any) string {
	kind := text(metric, "type")
	source, known := sources[kind]
	if !known {
		return "<unknown type>"
	}
	target, current := source+".target.", source+".current."
	pair := func(field string) string {
		return cmp.Or(text(measured, current+field), "<unknown>") + "/" + text(metric, target+field)
	}
	average := text(metric, target+"averageValue") != ""
	switch {
	case strings.HasSuffix(kind, "Resource") && average:
		return text(metric, source+".name") + ": " + pair("averageValue")
	case strings.HasSuffix(kind, "Resource"):
		return text(metric, source+".name") + ": " + percent(measured, current, "<unknown>") + "/" + percent(metric, target, "<auto>")
	case kind == "Pods":
		return pair("averageValue")
	case average:
		return pair("averageValue") + " (avg)"
	}
	return pair("value")
}

// percent is the average utilization below a path, with a text for its absence.
func percent(o map[string]any, path, otherwise string) string {
	if value := at(o, path+"averageUtilization"); value != nil {
		return fmt.Sprintf("%v%%", value)
	}
	return otherwise
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package draw

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// facts returns texts about a handler: what it does, when it runs, and what it looks at. A text may be empty.
func facts(h *dsl.Handler) []string {
	only := filters("", "", h.Labels, h.Annotations, h.When)
	if h.Machine != nil { // its own drawing has the rest
		return []string{has(h.Machine), why(h), only}
	}
	return []string{cmp.Or(h.Known.Action, "in Go"), why(h), looks(h), only, sets(h)}
}

// has describes the states of a machine.
func has(m *dsl.Machine) string {
	switch n := len(m.States) + len(m.Deletion); {
	case len(m.States) == 0:
		return "machine without states"
	case n == 1:
		return "machine of one state, " + m.States[0].Name
	default:
		return fmt.Sprintf("machine of %d states, first %s", n, cmp.Or(m.Initial, m.States[0].Name))
	}
}

// why says when a handler runs.
func why(h *dsl.Handler) string {
	if h.Daemon != nil {
		return "all the time"
	}
	var causes []string
	if h.Level() {
		causes = []string{string(dsl.Reconcile)}
	}
	for _, c := range h.Causes {
		if c != dsl.Timer && (!h.Level() || !slices.Contains(dsl.ReconcileCauses(), c)) {
			causes = append(causes, string(c))
		}
	}
	var out []string
	if h.ResourceWide {
		out = append(out, "for all objects")
	}
	if len(causes) > 0 {
		out = append(out, "for "+strings.Join(causes, ", "))
	}
	if times := clock(h.Timing); times != "" {
		out = append(out, times)
	}
	if h.AtTime() {
		out = append(out, "once at "+cmp.Or(h.Known.At.Text, "a time of the object"))
	}
	return strings.Join(out, ", ")
}

// clock describes a handler's timing.
func clock(t *dsl.Timing) string {
	if t == nil {
		return ""
	}
	var out []string
	if t.Every > 0 {
		out = append(out, "every "+plain.Period(t.Every))
	}
	if t.Pause > 0 {
		out = append(out, plain.Period(t.Pause)+" after each run")
	}
	if t.Cron != "" {
		out = append(out, strings.TrimSpace("at "+t.Cron+" "+t.TimeZone))
	}
	if t.Idle > 0 {
		out = append(out, "once unchanged for "+plain.Period(t.Idle))
	}
	return strings.Join(out, ", ")
}

// looks names the fields that a handler looks at.
func looks(h *dsl.Handler) string {
	if h.ResourceWide || h.Daemon != nil || !h.On(dsl.Create) && !h.On(dsl.Update) {
		return ""
	}
	return "looks at " + h.View().String()
}

// sets names the fields that a handler is known to set.
func sets(h *dsl.Handler) string {
	var what []string
	for _, p := range h.Known.Sets {
		if !(dsl.Path{"status", "conditions"}).Leads(p) { // conditions are named by type
			what = append(what, p.String())
		}
	}
	if len(h.Known.Conditions) > 0 {
		word := "conditions "
		if len(h.Known.Conditions) == 1 {
			word = "condition "
		}
		what = append(what, word+strings.Join(h.Known.Conditions, ", "))
	}
	if len(what) == 0 {
		return ""
	}
	return "sets " + strings.Join(what, ", ")
}

// filters describes the filters of a handler or a resource: selectors, labels and annotations, and an expression.
func filters(labelSelector, fieldSelector string, labels, annotations []dsl.Match, when dsl.Predicate) string {
	var out []string
	for _, selector := range []string{labelSelector, fieldSelector} {
		if selector != "" {
			out = append(out, selector)
		}
	}
	for _, m := range slices.Concat(labels, annotations) {
		switch m.Op {
		case dsl.Exists:
			out = append(out, m.Key)
		case dsl.Absent:
			out = append(out, "no "+m.Key)
		default:
			out = append(out, m.Key+"="+m.Value)
		}
	}
	if when != nil {
		out = append(out, "its filter holds")
	}
	if len(out) == 0 {
		return ""
	}
	return "only where " + strings.Join(out, ", ")
}

// groupResource names a resource without its version.
func groupResource(name dsl.ResourceName) string {
	return strings.Join(slices.DeleteFunc([]string{name.Resource, name.Group}, func(part string) bool { return part == "" }), ".")
}

// version returns the version and group of a resource's name.
func version(name dsl.ResourceName) string {
	if name.Group == "" {
		return cmp.Or(name.Version, "the core group")
	}
	return strings.TrimSuffix(name.Group+"/"+name.Version, "/")
}

// activities draws the operator's activities.
func activities(op *dsl.Operator, taken ids) Part {
	out := Part{Title: "the process"}
	for _, c := range []dsl.Cause{dsl.Startup, dsl.Cleanup, dsl.HealthProbe, dsl.ReadyProbe} {
		for _, h := range op.Activities(c) {
			out.Nodes = append(out.Nodes, Node{
				ID: taken.of("activity", string(c), h.ID), Shape: Activity, Name: short(h.ID, nameWidth), Lines: lines([]string{cmp.Or(h.Known.Action, "in Go"), moments[c]}),
			})
		}
	}
	return out
}

// moments says when activities run.
var moments = map[dsl.Cause]string{
	dsl.Startup: "when the process begins", dsl.Cleanup: "when the process ends",
	dsl.HealthProbe: "when /healthz is asked", dsl.ReadyProbe: "when /readyz is asked",
}

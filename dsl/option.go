// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"slices"
)

// HandlerKind is a kind of handler. It decides which options a handler may have.
type HandlerKind uint8

// The kinds of handlers.
const (
	// ObjectHandler runs for each object of a resource.
	ObjectHandler HandlerKind = 1 << iota
	// DaemonHandler is a daemon; see [Resource.Daemon].
	DaemonHandler
	// ScheduleHandler runs for the resource as a whole; see [Resource.Schedule].
	ScheduleHandler
	// ActivityHandler runs when the process starts or stops; see [Operator.OnStartup].
	ActivityHandler
	// ProbeHandler answers /healthz or /readyz; see [Operator.OnHealth].
	ProbeHandler
	// SubHandler is a part of another handler; see [Request.Handle].
	SubHandler
	// AdmissionHandler decides about requests; see [Resource.Validate].
	AdmissionHandler
)

const (
	// noObject are the kinds that have no single object.
	noObject = ScheduleHandler | activities
	// activities are the kinds that have no resource.
	activities = ActivityHandler | ProbeHandler
)

// optionRow has the properties of an option of handlers.
type optionRow struct {
	// name is the key of the option in YAML.
	name string
	// not are the kinds of handlers, apart from daemons, for which the option has no meaning.
	not HandlerKind
	// daemon says why daemons cannot have the option; empty when they can.
	daemon string
	// only is a condition for the option to have a meaning; nil when it has one for every handler.
	only *condition
	// given reports whether a handler has the option. It is nil for an option of YAML alone, and for one that all
	// handlers may have.
	given func(*Handler) bool
	// check reports faults of the value; nil when all values are valid.
	check func(*Handler, check)
}

// condition must hold for a handler that has an option.
type condition struct {
	// fault is the message for another handler.
	fault string
	met   func(*Handler) bool
}

// A cause in Known.Brings does not count here: the author has not written it.
var (
	forDeletions = condition{
		fault: "is only for handlers with cause delete",
		met:   func(h *Handler) bool { return slices.Contains(h.given, Delete) },
	}
	forResumes = condition{
		fault: "is only for handlers with cause resume that are not level-triggered and have no cause delete",
		met:   func(h *Handler) bool { return slices.Contains(h.given, Resume) && !h.Level() && !h.On(Delete) },
	}
)

// optionTable has the options of handlers. The form of a handler in YAML (package config) has a field for each, and
// [Handler] has one for each that is not for YAML alone.
var optionTable = []optionRow{
	{name: "was", not: noObject | SubHandler | AdmissionHandler, daemon: "is not for daemons, which have no stored state",
		given: func(h *Handler) bool { return len(h.Was) > 0 }, check: (*Handler).checkWas},
	{name: "causes", not: noObject | SubHandler | AdmissionHandler, daemon: "is not for daemons, which run all the time",
		given: (*Handler).hasCauses, check: (*Handler).checkCauses},
	{name: "when", not: noObject, given: func(h *Handler) bool { return h.When != nil }},
	{name: "let"},
	{name: "includeWhen", not: noObject | AdmissionHandler},
	{name: "field", not: noObject | AdmissionHandler, daemon: "is not for daemons, which hear of every change",
		given: func(h *Handler) bool { return len(h.Fields) > 0 }, check: (*Handler).checkField},
	{name: "labels", not: noObject, given: func(h *Handler) bool { return len(h.Labels) > 0 }, check: (*Handler).checkLabels},
	{name: "annotations", not: noObject, given: func(h *Handler) bool { return len(h.Annotations) > 0 }, check: (*Handler).checkAnnotations},
	{name: "retries", not: ProbeHandler | AdmissionHandler, given: func(h *Handler) bool { return h.Retries != Unlimited }},
	{name: "errors", not: ProbeHandler | AdmissionHandler, daemon: "is not for daemons: an error has them run again, Permanent ends them",
		given: func(h *Handler) bool { return h.Errors != "" }},
	{name: "backoff", not: ProbeHandler | AdmissionHandler, given: func(h *Handler) bool { return h.Backoff != Backoff{} }},
	{name: "timeout", daemon: "is not for daemons, which run as long as they like (want stopWithin for the time to end)",
		given: func(h *Handler) bool { return h.Timeout != 0 }, check: (*Handler).checkAttempts},
	{name: "deadline", not: ProbeHandler | AdmissionHandler, daemon: "is not for daemons, which run as long as they like",
		given: func(h *Handler) bool { return h.Deadline != 0 }},
	{name: "after", not: noObject | SubHandler | AdmissionHandler, daemon: "is not for daemons, which run beside handlers",
		given: func(h *Handler) bool { return len(h.After) > 0 }, check: (*Handler).checkAfter},
	{name: "finalizer", not: activities | SubHandler | AdmissionHandler, only: &forDeletions,
		given: func(h *Handler) bool { return h.NoFinalizer }},
	{name: "onFailure", not: activities | SubHandler | AdmissionHandler, only: &forDeletions, daemon: "is not for daemons: a deletion does not wait for one that has ended",
		given: func(h *Handler) bool { return h.Release }, check: (*Handler).checkRelease},
	{name: "deleted", not: activities | SubHandler | AdmissionHandler, only: &forResumes, daemon: "is not for daemons, which end before their object goes",
		given: func(h *Handler) bool { return h.Deleted }},
	{name: "reads", not: noObject | SubHandler | AdmissionHandler, given: func(h *Handler) bool { return h.Reads != nil }, check: (*Handler).checkReads},
	{name: "old", not: noObject | AdmissionHandler, daemon: "is not for daemons, which have no stored state",
		given: func(h *Handler) bool { return h.NoOld }},
	{name: "with"},
	{name: "forEach", not: noObject | AdmissionHandler},
	{name: "key", not: noObject | AdmissionHandler},
	{name: "steps", not: activities | AdmissionHandler},
	{name: "needs", check: (*Handler).checkNeeds},
	{name: "every", not: activities | SubHandler | AdmissionHandler, daemon: "is not for daemons, which run all the time", // also for the other times
		given: func(h *Handler) bool { return h.Timing != nil }, check: (*Handler).checkTiming},
	{name: "pause", not: activities | AdmissionHandler},
	{name: "cron", not: activities | AdmissionHandler},
	{name: "timeZone", not: activities | AdmissionHandler},
	{name: "idle", not: noObject | AdmissionHandler,
		given: func(h *Handler) bool { return h.kind() == ScheduleHandler && h.Timing != nil && h.Timing.Idle > 0 }},
	{name: "at", not: noObject | AdmissionHandler,
		given: func(h *Handler) bool { return h.kind() == ScheduleHandler && h.AtTime() }},
	{name: "jitter", not: activities | AdmissionHandler},
	{name: "runAgainAfter", not: noObject | AdmissionHandler},
	{name: "initialDelay", not: activities | AdmissionHandler, given: func(h *Handler) bool { return h.Delay != nil }, check: (*Handler).checkDelay},
}

// OptionsNotFor returns the options, by their keys in YAML, that have no meaning for a kind of handler.
func OptionsNotFor(kind HandlerKind) (names []string) {
	for _, row := range optionTable {
		// A schedule has no cause that such an option is for.
		if row.bars(kind) || kind == ScheduleHandler && row.only != nil {
			names = append(names, row.name)
		}
	}
	return names
}

// Options returns the keys of all options in YAML.
func Options() (names []string) {
	for _, row := range optionTable {
		names = append(names, row.name)
	}
	return names
}

// bars reports whether a kind of handler cannot have the option.
func (row *optionRow) bars(kind HandlerKind) bool {
	return row.not&kind != 0 || kind == DaemonHandler && row.daemon != ""
}

// why returns the message for a handler of a kind that cannot have the option. The cause is the first one of the handler.
func (row *optionRow) why(kind HandlerKind, cause Cause) string {
	switch {
	case kind == DaemonHandler:
		return row.daemon
	case kind == AdmissionHandler:
		return "is not for admission handlers, which answer a request once"
	case kind == ScheduleHandler:
		return "is not for a schedule, which has no one object"
	case row.not&ActivityHandler == 0:
		return "is not for probes, which are asked once each time"
	}
	return fmt.Sprintf("is for handlers of objects, which %s has not", cause)
}

// kind returns the kind of a handler that was added to a resource or an operator.
func (h *Handler) kind() HandlerKind {
	switch {
	case h.Daemon != nil:
		return DaemonHandler
	case h.Admission != nil:
		return AdmissionHandler
	case h.ResourceWide && h.of != nil:
		return ScheduleHandler
	case h.ResourceWide && (h.On(HealthProbe) || h.On(ReadyProbe)):
		return ProbeHandler
	case h.ResourceWide:
		return ActivityHandler
	}
	return ObjectHandler
}

// checkOptions reports options that the handler cannot have, and faults of the others.
func (h *Handler) checkOptions(c check) {
	kind := h.kind()
	for _, row := range optionTable {
		h.checkOption(c, kind, &row)
	}
}

func (h *Handler) checkOption(c check, kind HandlerKind, row *optionRow) {
	given := row.given != nil && row.given(h)
	switch {
	case given && row.bars(kind):
		c.unwanted(row.name, "%s", row.why(kind, h.cause()))
	case given && row.only != nil && kind != DaemonHandler && len(h.Causes) > 0 && !row.only.met(h):
		c.unwanted(row.name, "%s", row.only.fault)
	}
	if row.check != nil && (c.Resource != nil && kind != AdmissionHandler || !row.bars(kind)) { // the check may need the resource
		row.check(h, c)
	}
}

// hasCauses reports whether the handler has causes besides those of its kind.
func (h *Handler) hasCauses() bool {
	switch h.kind() {
	case DaemonHandler:
		return len(h.given) != 1 || h.given[0] != Running
	case ScheduleHandler:
		return len(h.Causes) > 1
	case ActivityHandler, ProbeHandler:
		return false // [At] adds one, and its row reports that
	}
	return len(h.Causes) > 0
}

// cause returns the first cause; empty for a handler without causes.
func (h *Handler) cause() Cause {
	if len(h.Causes) == 0 {
		return ""
	}
	return h.Causes[0]
}

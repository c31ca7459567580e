// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// The causes of activities: code that runs for the operator as a whole. Handlers of resources do not have these
// causes.
const (
	// Startup: the process starts, and no resource is watched yet.
	Startup Cause = "startup"
	// Cleanup: the process stops, and handlers do not run any more.
	Cleanup Cause = "cleanup"
	// HealthProbe and ReadyProbe: /healthz or /readyz was requested.
	HealthProbe Cause = "health"
	ReadyProbe  Cause = "ready"
)

// DefaultProbeTimeout is the timeout of a probe that does not set one. It is shorter than the kubelet's default of
// one second.
const DefaultProbeTimeout = 800 * time.Millisecond

// OnStartup adds code that runs when the process starts, before its first request to the API server. It runs in
// every process, leader or not. Startups run one after the other, in declared order. A startup that fails is
// retried as its options say, and the others wait. When it has failed for good, the process exits with its error.
//
// The request has no object, children, related objects or indexes, because no resource is watched yet. Patch must
// stay empty. Events are logged. Memo and OperatorMemo are both the operator's memo: leave there what handlers use.
// The client reads from the API server. With leader election, writes are refused, because no process leads yet;
// create objects in a handler or a schedule instead. OnStartup panics when fn is nil; [Operator.Validate] reports
// other faults.
func (op *Operator) OnStartup(id string, fn Func, options ...Option) {
	op.activity(Startup, id, fn, options)
}

// OnCleanup adds code that runs when the process stops, provided that all startups have succeeded. Its request is
// that of [Operator.OnStartup], and can also read indexes. It runs after handlers have ended or their grace period
// has passed. Cleanups have the rest of the grace period, and at least a tenth of it. The leader releases its lock
// only afterwards, so a cleanup may write. Cleanups share the time evenly: one that does not succeed ends with its
// share, and the next ones have theirs. The log names cleanups that failed for good or did not end in time.
// Cleanups do not run when the process is killed.
func (op *Operator) OnCleanup(id string, fn Func, options ...Option) {
	op.activity(Cleanup, id, fn, options)
}

// OnHealth adds a check to /healthz, named probe/<id>. While it returns an error, the process should be restarted.
// It runs when /healthz is requested, after the startups have ended; requests at the same time share one run. It
// must answer within its [Timeout], by default DefaultProbeTimeout. Its request is that of [Operator.OnStartup],
// and can also read indexes.
func (op *Operator) OnHealth(id string, fn Func, options ...Option) {
	op.activity(HealthProbe, id, fn, options)
}

// OnReady is [Operator.OnHealth] for /readyz. While it returns an error, the process is not ready, and goes on
// working.
func (op *Operator) OnReady(id string, fn Func, options ...Option) {
	op.activity(ReadyProbe, id, fn, options)
}

// Activities returns the operator's activities for a cause, in declared order. The slice is the caller's.
func (op *Operator) Activities(c Cause) []*Handler {
	return slices.DeleteFunc(slices.Clone(op.activities), func(h *Handler) bool { return h.Causes[0] != c })
}

func (op *Operator) activity(c Cause, id string, fn Func, options []Option) {
	h := Handler{ID: id, Func: fn, Retries: Unlimited}
	for _, set := range options {
		set(&h)
	}
	op.AddActivity(c, h)
}

// AddActivity adds a handler as an activity for its cause, as [Operator.OnStartup] and the others do. It returns
// the handler that was added.
func (op *Operator) AddActivity(c Cause, h Handler) *Handler {
	if h.Func == nil {
		panic("dsl: " + string(c) + " " + h.ID + " has a nil function")
	}
	h.Causes, h.ResourceWide = append([]Cause{c}, h.Causes...), true
	op.activities = append(op.activities, &h)
	return &h
}

// checkActivities reports faults of the operator's activities.
func (op *Operator) checkActivities(found *[]error) {
	for i, h := range op.activities {
		c := check{Place{Handler: h}, found}
		if fault := h.WrongID(); fault != "" {
			c.fault("id", "%s", fault)
		}
		same := func(earlier *Handler) bool { return earlier.ID == h.ID && earlier.Causes[0] == h.Causes[0] }
		if first := slices.IndexFunc(op.activities[:i], same); first >= 0 {
			c.note(Fault{First: &Place{Handler: op.activities[first], Field: "id"}}, "id", "the id is used twice")
		}
		for _, w := range h.invalid {
			c.fault(w.Field, "%w", w.Err)
		}
		h.checkOptions(c)
		op.checkReads(c, h)
	}
}

// checkReads reports indexes that an activity declares to read and that do not exist.
func (op *Operator) checkReads(c check, h *Handler) {
	var names []string
	for _, x := range op.indexes {
		names = append(names, x.Name)
	}
	for _, name := range h.Known.Reads.Indexes {
		switch {
		case h.Causes[0] == Startup:
			c.fault("", "it reads index %q: a startup runs before anything is watched", name)
			return
		case name != "*" && !slices.Contains(names, name):
			c.fault("", "it reads an unknown index %q (%s)", name, words.Hint(name, names))
		}
	}
}

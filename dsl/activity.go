// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"fmt"
	"slices"
	"time"

	"github.com/handwerk-dev/handwerk/dsl/words"
)

// The causes of activities, which are code that runs for the operator as a whole. No handler of a resource has them.
const (
	// Startup: the process begins; nothing is watched yet.
	Startup Cause = "startup"
	// Cleanup: the process ends; no handler runs any more.
	Cleanup Cause = "cleanup"
	// HealthProbe and ReadyProbe: somebody asks /healthz, /readyz.
	HealthProbe Cause = "health"
	ReadyProbe  Cause = "ready"
)

// DefaultProbeTimeout is how long a probe has to answer that says nothing else: shorter than the second that the kubelet
// waits by default.
const DefaultProbeTimeout = 800 * time.Millisecond

// OnStartup adds code that runs when the process begins, before it asks the API server for anything: in each process,
// whether it will lead or not, in the order in which it is declared, one after the other. One that fails is tried again, as its
// options say, while the others wait; when it has failed for good, the process ends with its error.
//
// Its request has no object, no children, no related objects and no indexes, since nothing is watched yet; Patch must stay empty, and what it reports to Events is
// logged. Memo and OperatorMemo are the operator's, which is where it leaves what handlers use. Its client reads from the API
// server; with leader election nobody leads yet, so writes are refused. What the cluster is to have, a handler or a schedule
// writes. OnStartup panics when fn is nil; [Operator.Validate] reports faults.
func (op *Operator) OnStartup(id string, fn Func, options ...Option) {
	op.activity(Startup, id, fn, options)
}

// OnCleanup adds code that runs when the process ends and all startups have succeeded, as for [Operator.OnStartup], but that it can read indexes: after
// handlers have ended, or their grace period has passed, in what is left of that, or in a tenth of it where that is more. A
// process that leads gives its lock back after that, so it may write. Cleanups share the time evenly: one that does not succeed
// ends with its part, and leaves the rest to those after it. What has failed for good, or has not ended in time, the log tells. It does not run when
// the process is killed.
func (op *Operator) OnCleanup(id string, fn Func, options ...Option) {
	op.activity(Cleanup, id, fn, options)
}

// OnHealth adds a check to /healthz, named probe/<id>: the process is to be restarted while it returns an error. It runs when
// /healthz is asked, once for all who ask at a time, from the end of the startups on, and must answer within its [Timeout],
// DefaultProbeTimeout where none is given. Its request is that of [Operator.OnStartup], and can read indexes.
func (op *Operator) OnHealth(id string, fn Func, options ...Option) {
	op.activity(HealthProbe, id, fn, options)
}

// OnReady is [Operator.OnHealth] for /readyz: the process is not ready while it returns an error, and works on.
func (op *Operator) OnReady(id string, fn Func, options ...Option) {
	op.activity(ReadyProbe, id, fn, options)
}

// Activities returns what runs for the operator as a whole for a cause, in declared order. The slice is the caller's.
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

// AddActivity adds code that is at hand, as [Operator.OnStartup] and the others do, for its cause. It returns what is added.
func (op *Operator) AddActivity(c Cause, h Handler) *Handler {
	if h.Func == nil {
		panic("dsl: " + string(c) + " " + h.ID + " has a nil function")
	}
	h.Causes, h.ResourceWide = append([]Cause{c}, h.Causes...), true
	op.activities = append(op.activities, &h)
	return &h
}

// checkActivities reports what is wrong with code for the operator as a whole.
func (op *Operator) checkActivities(found *[]error) {
	for i, h := range op.activities {
		c := check{Place{Handler: h}, found}
		if fault := h.WrongID(); fault != "" {
			c.fault("id", "%s", fault)
		}
		for _, earlier := range op.activities[:i] {
			if earlier.ID == h.ID && earlier.Causes[0] == h.Causes[0] {
				c.note(Fault{First: &Place{Handler: earlier, Field: "id"}}, "id", "the id is used twice")
			}
		}
		for _, w := range h.invalid {
			c.fault(w.Field, "%w", w.Err)
		}
		h.checkAttempts(c)
		h.checkActivity(c)
		op.checkReads(c, h)
		for i, need := range h.Needs {
			if need.Resource == (ResourceName{}) && need.Kind.Empty() {
				c.fault("needs", "the need of %s is about an object, and there is none", need.Text())
				continue
			}
			need.check(c, fmt.Sprintf("needs[%d]", i))
		}
	}
}

// checkReads reports indexes that code for the operator as a whole is declared to read, and that there are not.
func (op *Operator) checkReads(c check, h *Handler) {
	var names []string
	for _, x := range op.indexes {
		names = append(names, x.Name)
	}
	for _, name := range h.Reads.Indexes {
		switch {
		case h.Causes[0] == Startup:
			c.fault("", "it reads index %q: a startup runs before anything is watched", name)
			return
		case name != "*" && !slices.Contains(names, name):
			c.fault("", "it reads an unknown index %q (%s)", name, words.Hint(name, names))
		}
	}
}

// checkActivity reports options that mean nothing without an object.
func (h *Handler) checkActivity(c check) {
	for _, has := range []struct {
		field string
		any   bool
	}{
		{"field", len(h.Fields) > 0}, {"labels", len(h.Labels) > 0}, {"annotations", len(h.Annotations) > 0}, {"when", h.When != nil},
		{"every", h.Timing != nil}, {"after", len(h.After) > 0}, {"was", len(h.Was) > 0}, {"finalizer", h.NoFinalizer},
		{"onFailure", h.Release}, {"old", h.NoOld}, {"deleted", h.Deleted}, {"initialDelay", h.Delay != nil},
	} {
		if has.any {
			c.unwanted(has.field, "is for handlers of objects, which %s has not", h.Causes[0])
		}
	}
	if h.Causes[0] != HealthProbe && h.Causes[0] != ReadyProbe {
		return
	}
	for _, has := range []struct {
		field string
		any   bool
	}{
		{"retries", h.Retries != Unlimited}, {"backoff", h.Backoff != Backoff{}}, {"deadline", h.Deadline > 0}, {"errors", h.Errors != ""},
	} {
		if has.any {
			c.unwanted(has.field, "is not for probes, which are asked once each time")
		}
	}
}

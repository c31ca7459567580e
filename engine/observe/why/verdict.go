// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/handwerk-dev/handwerk/dsl"
)

// State is the state of a handler, in one word.
type State string

// The states, the gravest first. A handler without one has nothing to do.
const (
	// Failed: it failed for good. Failing: it, or its when, failed, and there will be another attempt.
	Failed  State = "failed"
	Failing State = "failing"
	// Waiting: it waits for other objects.
	Waiting State = "waiting"
	// Due: it has something to do, and did not run yet.
	Due State = "due"
	// Filtered: it has something to do, and its conditions do not hold.
	Filtered State = "filtered"
)

// State returns the handler's state.
func (f Facts) State() State {
	switch {
	case f.Failed:
		return Failed
	case f.Reason == Blocked, f.Reason == DeadlineOver:
		return f.Reason.state()
	case f.Waits:
		return Waiting
	case f.Attempts > 0:
		return Failing
	}
	return f.Reason.state()
}

// Judge sets the verdict: the state of the object, and the one cause that decides.
func (a *Answer) Judge() {
	for _, judge := range []func() string{a.outside, a.ends, a.stops, a.broken, a.lacks, a.ignores} {
		if a.Verdict = judge(); a.Verdict != "" {
			return
		}
	}
	switch {
	case a.Health != "":
		a.Verdict = a.Health
	case a.Without == "":
		a.Verdict = "new: no reconcile of it has finished yet"
	}
}

// outside returns the verdict about an object that the operator does not see, or that is paused.
func (a *Answer) outside() string {
	switch {
	case a.Unseen != "":
		return "not seen: " + a.Unseen
	case a.Idle == nil || a.Idle.Reason != Paused.word:
		return ""
	}
	out := a.Idle.rest()
	if a.Idle.Ends != "" {
		out += " (" + a.Idle.Ends + ")"
	}
	if a.Deletion != nil {
		out += "; it is being deleted"
	}
	return out
}

// rest returns the sentence without its common beginning.
func (i *Idle) rest() string { return strings.TrimPrefix(i.Says, "no handler runs: ") }

// ends returns the verdict about an object that is being deleted.
func (a *Answer) ends() string {
	if a.Deletion == nil {
		return ""
	}
	out := "being deleted for " + short(a.At.Sub(a.Deletion.Since))
	if a.Idle != nil && a.Idle.Reason == DeletionsHeld.word {
		return out + ": " + a.Idle.rest()
	}
	if len(a.Deletion.Held) > 0 {
		out += ": held by " + a.Deletion.Held[0]
	}
	return out
}

// stops returns the verdict about an object whose reconciles do not begin, fail, or do not end.
func (a *Answer) stops() string {
	switch {
	case a.Idle != nil && a.Idle.Reason == BreakerOpen.word:
		return "stuck: " + a.Idle.rest()
	case a.Idle != nil:
		return "waiting: " + a.Idle.rest()
	case a.Problem != "":
		return "failing: " + a.Problem
	}
	if i := slices.IndexFunc(a.Handlers, func(h Handler) bool { return h.Running != nil && !h.Daemon }); i >= 0 && a.Without != "" {
		return fmt.Sprintf("busy: handler %s has been running for %s", a.Handlers[i].ID, short(a.At.Sub(*a.Handlers[i].Running)))
	}
	return ""
}

// broken returns the verdict about an object with a failing handler or child.
func (a *Answer) broken() string {
	for _, standing := range []State{Failed, Failing} {
		h := a.first(standing)
		if h == nil {
			continue
		}
		for _, right := range a.Rights {
			if strings.Contains(right, "/"+h.ID) {
				return fmt.Sprintf("%s: handler %s: right is missing: %s", standing, h.ID, right)
			}
		}
		return string(standing) + ": " + h.Says
	}
	return a.childThatIs("failed")
}

// lacks returns the verdict about an object that waits for something.
func (a *Answer) lacks() string {
	if h := a.first(Waiting); h != nil {
		return "waiting: " + h.Says
	}
	for _, state := range []string{"deleting", "not ready"} {
		if out := a.childThatIs(state); out != "" {
			return out
		}
	}
	if h := a.first(Due); h != nil {
		return "waiting: " + h.Says
	}
	return ""
}

// ignores returns the verdict about an object that a handler's filters exclude, or whose own condition Ready is not
// True.
func (a *Answer) ignores() string {
	ready := slices.IndexFunc(a.Conditions, func(c Condition) bool { return c.Type == dsl.Ready && c.Status != "True" })
	acts := slices.ContainsFunc(a.Handlers, func(h Handler) bool { return h.State != Filtered })
	for _, h := range a.Handlers {
		keeps := slices.ContainsFunc(a.Children, func(c Child) bool { return c.Handler == h.ID })
		if h.State == Filtered && (ready >= 0 || !acts || keeps || h.Last != nil) {
			return "stuck: " + h.Says
		}
	}
	if ready < 0 {
		return ""
	}
	return "not ready: " + a.Conditions[ready].String()
}

// first returns the first handler with a state; nil for none.
func (a *Answer) first(standing State) *Handler {
	for i := range a.Handlers {
		if a.Handlers[i].State == standing {
			return &a.Handlers[i]
		}
	}
	return nil
}

// childThatIs returns a text about the first child in a state; empty for none.
func (a *Answer) childThatIs(state string) string {
	for _, c := range a.Children {
		if c.State == state {
			return strings.TrimSuffix(state+": child "+c.People()+": "+oneLine(c.Says), ": ")
		}
	}
	return ""
}

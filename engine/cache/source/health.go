// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// Phase is the state of a source, in words for people.
type Phase string

// The phases.
const (
	// Starting: the first listing is not complete.
	Starting Phase = "starting"
	// Unserved: the API server does not serve the resource.
	Unserved Phase = "not served"
	// Forbidden: a right is missing.
	Forbidden Phase = "forbidden"
	// Faulty: the objects cannot be listed or watched for another reason.
	Faulty Phase = "faulty"
	// Running: the objects are watched, in some namespaces at least.
	Running Phase = "running"
)

// State is the state of a source, as a whole or in one namespace.
type State struct {
	Phase Phase
	// Text is the reason, for people. May be empty.
	Text string
	// Missing are the missing verbs, if they are the reason.
	Missing []string
	// Logged is true if the log has the reason already, for example that the server is away. NotFound is true for a 404,
	// which follows from a resource that is not served and needs no line of its own.
	Logged, NotFound bool
}

// Status is the status of a source, for people.
type Status struct {
	Phase Phase
	// Message is the reason. Empty while the source runs.
	Message string
	// Warning has the problems in some namespaces while the source runs. May be empty.
	Warning string
}

// Well reports whether the source runs, in every namespace.
func (s Status) Well() bool { return s.Phase == Running && s.Warning == "" }

// Health keeps the state of one source. Its methods may be called by any number of goroutines.
type Health struct {
	log     logr.Logger
	settled chan struct{}

	mu    sync.Mutex
	state State
	// degraded describes the time for which the source is degraded; nil if it is not.
	degraded *degradation
	problems Problems
	// warning is the text of the problems while the source runs. Warned is true when the log has it.
	warning string
	warned  bool
	// recovered are namespaces whose problem is over, and whose objects are not listed yet.
	recovered map[string]bool
}

// newHealth returns the health of a source that is starting.
func newHealth(log logr.Logger) *Health {
	return &Health{log: log, settled: make(chan struct{}), state: State{Phase: Starting}, recovered: map[string]bool{}}
}

// Settled is closed when the source runs for the first time, or its first fault is known.
func (h *Health) Settled() <-chan struct{} { return h.settled }

// Status returns the status of the source.
func (h *Health) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Status{h.state.Phase, h.state.Text, h.warning}
}

// In returns the state of the source in a namespace with a problem, or else the state as a whole.
func (h *Health) In(namespace string) State {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ns := range []string{"", namespace} {
		if p, found := h.problems[ns]; found {
			return p
		}
	}
	return h.state
}

// Missing returns the number of namespaces for each missing verb.
func (h *Health) Missing() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]int{}
	for _, p := range h.problems {
		for _, verb := range p.Missing {
			out[verb]++
		}
	}
	return out
}

// Set sets the state of the source as a whole. Failures is the number of failures of its informers so far.
func (h *Health) Set(now State, failures int) {
	h.mu.Lock()
	was := h.degraded
	changed := h.state.Phase != now.Phase || h.state.Text != now.Text || was != nil && was.last.Logged && !now.Logged
	h.state, h.degraded = now, was.next(now, failures)
	if now.Phase != Starting {
		select {
		case <-h.settled:
		default:
			close(h.settled)
		}
	}
	h.mu.Unlock()
	if changed && now.Phase != Starting {
		h.say(now, was, failures)
	}
}

// SetAll sets the state of the source as a whole and in its namespaces; listing are the namespaces whose first listing is not
// complete. It reports whether the objects of a namespace whose problem is over are listed now.
func (h *Health) SetAll(now State, failures int, all Problems, listing []string) (recovered bool) {
	if now.Phase != Starting && now.Phase != Running {
		h.mu.Lock()
		h.warning, h.warned = "", false // it is degraded as a whole
		h.mu.Unlock()
	}
	h.Set(now, failures)
	if now.Phase == Running {
		h.warn(all)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for ns := range h.problems {
		if _, still := all[ns]; !still {
			h.recovered[ns] = true
		}
	}
	h.problems = all
	for ns := range h.recovered {
		if !slices.Contains(listing, ns) {
			delete(h.recovered, ns)
			recovered = true
		}
	}
	return recovered
}

// warn records the problems in some namespaces while the source runs. It logs a change unless the log has the reason already.
func (h *Health) warn(all Problems) {
	text, logged := all.String(), all.logged()
	h.mu.Lock()
	before, warned := h.warning, h.warned
	h.warning, h.warned = text, text != "" && (warned || !logged)
	h.mu.Unlock()
	switch {
	case before == text && (warned || logged || text == ""):
	case text == "" && warned:
		h.log.Info("resource is watched in every namespace again")
	case text != "" && !logged:
		h.log.Info("resource is not watched well in every namespace", logmark.Warning, true, "reason", text)
	default:
		h.log.V(1).Info("resource is watched in other namespaces than before", "reason", text)
	}
}

// degradation is a time for which a source is degraded. The log has a line for its beginning and one for its end, unless
// it has the reason already. Further failures are counted, and logged if they are of another kind.
type degradation struct {
	begun time.Time
	// last is the last state other than Starting.
	last State
	// before is how often the source's informers had failed when it began.
	before int
	// logged is true when the log has its beginning.
	logged bool
}

// next returns the degradation in another state; nil if it is over. A nil degradation has not begun.
func (d *degradation) next(now State, failures int) *degradation {
	switch {
	case now.Phase == Running:
		return nil
	case now.Phase == Starting:
		return d
	case d == nil:
		return &degradation{time.Now(), now, max(0, failures-1), !now.Logged}
	}
	return &degradation{d.begun, now, d.before, d.logged || !now.Logged}
}

// implies reports whether the logged state implies another one.
func (d *degradation) implies(now State) bool {
	if d.last.Phase == Unserved && now.NotFound {
		return true // such as for a CRD that comes back
	}
	return d.last.Phase == now.Phase && (now.Phase == Faulty || d.last.Text == now.Text)
}

// say logs a state, at V(1) if the log has it already.
func (h *Health) say(now State, was *degradation, failures int) {
	logged := was != nil && was.logged
	switch {
	case now.Phase == Running && !logged:
		h.log.V(1).Info("resource is watched")
	case now.Phase == Running:
		values := []any{"lasted", time.Since(was.begun).Round(time.Second).String()}
		if failures > was.before { // it may not have been tried at all
			values = append(values, "failed", failures-was.before)
		}
		h.log.Info("resource is watched again", values...)
	case now.Logged, logged && was.implies(now):
		h.log.V(1).Info("resource is degraded, as logged before", "state", string(now.Phase), "reason", now.Text)
	default:
		h.log.Info("resource is degraded", logmark.Warning, true, "state", string(now.Phase), "reason", now.Text)
	}
}

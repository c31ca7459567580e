// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// Phase says how a feed is, in words for people.
type Phase string

// The phases.
const (
	// Starting: it is too early to tell.
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

// State is how a feed is, as a whole or in one namespace.
type State struct {
	Phase Phase
	// Text says why, for people. Empty where the phase says it all.
	Text string
	// Missing are the verbs that are, where that is the reason.
	Missing []string
	// Told: the log tells of that already, as of a server that is away. NotFound: what is not served cannot be
	// listed or watched, nor is it served at once when its CRD comes, which need not be said once more.
	Told, NotFound bool
}

// Status is how a feed is, for people.
type Status struct {
	Phase Phase
	// Message says why. Empty while the feed runs.
	Message string
	// Warning tells of problems in some namespaces while the feed runs. Empty when there are none.
	Warning string
}

// Well reports whether the feed runs, in every namespace.
func (s Status) Well() bool { return s.Phase == Running && s.Warning == "" }

// Health is how one feed is. Its methods may be called by any number of goroutines.
type Health struct {
	log     logr.Logger
	settled chan struct{}

	mu    sync.Mutex
	state State
	// degraded is the time for which the feed is degraded, nil when it is not.
	degraded *degradation
	problems Problems
	// warning is what is said of the problems while the feed runs, warned whether it is in the log.
	warning string
	warned  bool
	// recovered are namespaces whose problem is over, and whose objects are not listed yet.
	recovered map[string]bool
}

// NewHealth returns the health of a feed that is starting.
func NewHealth(log logr.Logger) *Health {
	return &Health{log: log, settled: make(chan struct{}), state: State{Phase: Starting}, recovered: map[string]bool{}}
}

// Settled is closed when the feed runs for the first time, or its first fault is known.
func (h *Health) Settled() <-chan struct{} { return h.settled }

// Status tells how the feed is.
func (h *Health) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	return Status{h.state.Phase, h.state.Text, h.warning}
}

// In tells how the feed is in a namespace where it has a problem, or else how it is as a whole.
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

// Missing counts for each missing verb the namespaces in which it is.
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

// Set notes how the feed is as a whole. Failures is how often its informers have failed until now.
func (h *Health) Set(now State, failures int) {
	h.mu.Lock()
	was := h.degraded
	changed := h.state.Phase != now.Phase || h.state.Text != now.Text || was != nil && was.last.Told && !now.Told
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

// Survey notes how the feed is as a whole and in its namespaces, after a look at all of them; listing are those
// whose objects are not listed yet. It reports whether a problem is over that hid objects, and they are listed,
// however long other namespaces take.
func (h *Health) Survey(now State, failures int, all Problems, listing []string) (recovered bool) {
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

// warn notes what is wrong in some namespaces while the feed runs, and logs it when it changes, unless
// that is said already.
func (h *Health) warn(all Problems) {
	text, told := all.String(), all.told()
	h.mu.Lock()
	before, warned := h.warning, h.warned
	h.warning, h.warned = text, text != "" && (warned || !told)
	h.mu.Unlock()
	switch {
	case before == text && (warned || told || text == ""):
	case text == "" && warned:
		h.log.Info("resource is watched in every namespace again")
	case text != "" && !told:
		h.log.Info("resource is not watched well in every namespace", logmark.Warning, true, "reason", text)
	default:
		h.log.V(1).Info("resource is watched in other namespaces than before", "reason", text)
	}
}

// degradation is a time for which a feed is degraded. It begins with a line in the log and ends with one, unless
// its reason is said already; what comes in between is counted, and told when it is of another kind.
type degradation struct {
	begun time.Time
	// last is how the feed was last, but for when it was starting.
	last State
	// before is how often the feed's informers had failed when it began.
	before int
	// told: a line says that it began.
	told bool
}

// next is the degradation once the feed is otherwise; a nil one is none.
func (d *degradation) next(now State, failures int) *degradation {
	switch {
	case now.Phase == Running:
		return nil
	case now.Phase == Starting:
		return d
	case d == nil:
		return &degradation{time.Now(), now, max(0, failures-1), !now.Told}
	}
	return &degradation{d.begun, now, d.before, d.told || !now.Told}
}

// implies reports whether what was said of the feed says also how it is now.
func (d *degradation) implies(now State) bool {
	if d.last.Phase == Unserved && now.NotFound {
		return true // as of a CRD that comes back
	}
	return d.last.Phase == now.Phase && (now.Phase == Faulty || d.last.Text == now.Text)
}

// say says how the feed is, when that is news after a degradation.
func (h *Health) say(now State, was *degradation, failures int) {
	told := was != nil && was.told
	switch {
	case now.Phase == Running && !told:
		h.log.V(1).Info("resource is watched")
	case now.Phase == Running:
		values := []any{"lasted", time.Since(was.begun).Round(time.Second).String()}
		if failures > was.before { // it may not even have been tried
			values = append(values, "failed", failures-was.before)
		}
		h.log.Info("resource is watched again", values...)
	case now.Told, told && was.implies(now):
		h.log.V(1).Info("resource is degraded, as logged before", "state", string(now.Phase), "reason", now.Text)
	default:
		h.log.Info("resource is degraded", logmark.Warning, true, "state", string(now.Phase), "reason", now.Text)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/ops"
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

// Status is how a feed is, for people.
type Status struct {
	Phase Phase
	// Message says why. Empty while the feed runs.
	Message string
	// Warning tells what is wrong in some namespaces while the feed runs. Empty when nothing is.
	Warning string
}

// Status tells how the feed is.
func (f *Feed) Status() Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Status{f.state.phase, f.state.text, f.warning}
}

// Settled is closed when the feed runs for the first time, or its first fault is known.
func (f *Feed) Settled() <-chan struct{} { return f.settled }

// Check tells how the feed is, in a line of that name.
func (f *Feed) Check(name string) ops.Check {
	c := ops.Check{Name: name}
	switch now := f.Status(); {
	case now.Phase == Running && now.Warning != "":
		c.State, c.Message = ops.Warn, "watched, but not in every namespace: "+now.Warning
	case now.Phase != Running:
		c.State, c.Message = ops.Warn, string(now.Phase)
		if now.Message != "" {
			c.Message += ": " + now.Message
		}
	}
	return c
}

// degradation is a time for which a feed is degraded. It begins with a line in the log and ends with one, unless
// its reason is said already; what comes in between is counted, and told when it is of another kind.
type degradation struct {
	begun time.Time
	// last is how the feed was last, but for when it was starting.
	last state
	// before is how often the feed's informers had failed when it began.
	before int
	// told: a line says that it began.
	told bool
}

// fail notes an error for which the feed does not run. One that says that the feed is being stopped is none.
func (f *Feed) fail(err error) {
	if !errors.Is(err, context.Canceled) {
		f.setState(f.faulty(err))
	}
}

// setState notes how the feed is, and says when it begins to be degraded and when it is well again.
func (f *Feed) setState(now state) {
	failures := 0
	for _, h := range f.Informers("") {
		failures += h.State().Failures
	}
	f.mu.Lock()
	was := f.degraded
	changed := f.state.phase != now.phase || f.state.text != now.text || was != nil && was.last.silent && !now.silent
	f.state, f.degraded = now, was.next(now, failures)
	if now.phase != Starting {
		select {
		case <-f.settled:
		default:
			close(f.settled)
		}
	}
	f.mu.Unlock()
	if changed && now.phase != Starting {
		f.logState(now, was, failures)
	}
}

// next is the degradation once the feed is otherwise; a nil one is none.
func (d *degradation) next(now state, failures int) *degradation {
	switch {
	case now.phase == Running:
		return nil
	case now.phase == Starting:
		return d
	case d == nil:
		return &degradation{time.Now(), now, max(0, failures-1), !now.silent}
	}
	return &degradation{d.begun, now, d.before, d.told || !now.silent}
}

// implies reports whether what was said of the feed says also how it is now.
func (d *degradation) implies(now state) bool {
	if d.last.phase == Unserved && now.unserved {
		return true // as of a CRD that comes back
	}
	return d.last.phase == now.phase && (now.phase == Faulty || d.last.text == now.text)
}

// logState says how the feed is, when that is news after a degradation.
func (f *Feed) logState(now state, was *degradation, failures int) {
	told, log := was != nil && was.told, f.settings.Log
	switch {
	case now.phase == Running && !told:
		log.V(1).Info("resource is watched")
	case now.phase == Running:
		values := []any{"lasted", time.Since(was.begun).Round(time.Second).String()}
		if failures > was.before { // it may not even have been tried
			values = append(values, "failed", failures-was.before)
		}
		log.Info("resource is watched again", values...)
	case now.silent, told && was.implies(now):
		log.V(1).Info("resource is degraded, which is said already", "state", string(now.phase), "reason", now.text)
	default:
		log.Info("resource is degraded", dsl.LogWarning, true, "state", string(now.phase), "reason", now.text)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/transport"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// survey is the state of a feed's informers.
type survey struct {
	problems Problems
	// well is the number of namespaces where nothing is wrong; listing are those that are not listed yet.
	well    int
	listing []string
	// refused: an informer was refused what the account may do now; it will ask again.
	refused bool
}

// judge sets the state of the feed by its informers. The feed is degraded when it works in no namespace. Problems in some
// namespaces are a warning, because users without rights may create them.
func (f *Feed) judge(ctx context.Context, missing missingVerbs) (again bool) {
	seen := f.survey(ctx, missing)
	if ctx.Err() != nil {
		return false
	}
	now := seen.outcome(f.Status().Phase, len(missing) > 0)
	if f.health.Survey(now, f.failures(), seen.problems, seen.listing) {
		f.settings.Handler.Grant()
	}
	if f.settings.Steps != nil && f.delivered(ctx) {
		again = f.settings.Steps.Listed(ctx, now.Phase == Running)
	}
	return again || len(seen.problems) > 0
}

// survey looks at the informers. For those that are well it waits a moment, until the last callback of
// the first listing has returned.
func (f *Feed) survey(ctx context.Context, missing missingVerbs) survey {
	out := survey{problems: Problems{}}
	for ns, verbs := range missing {
		out.problems.Lack(ns, verbs, f.cluster.Outages.Away()) // a server that has just come back refuses for a moment what it will allow
	}
	for _, ns := range f.opened() {
		h := f.newest(ns)
		now := h.State()
		switch {
		case missing[ns] != nil:
		case now.Fault != nil:
			bad := f.faulty(now.Fault)
			bad.Logged = bad.Logged || f.cluster.Outages.Away() // a silent watch does not know the reason
			out.problems[ns] = bad
			out.refused = out.refused || apierrors.IsForbidden(now.Fault)
		case !now.Synced || !h.WaitSynced(ctx):
			out.listing = append(out.listing, ns)
		default:
			out.well++
		}
	}
	return out
}

// outcome returns the state of a feed after a survey. Lacking is true when a right is missing.
func (s survey) outcome(before Phase, lacking bool) State {
	switch {
	case len(s.listing) > 0 && (s.well == 0 || before != Running):
		return State{Phase: Starting, Text: "listing"}
	case s.well > 0 || len(s.problems) == 0:
		return State{Phase: Running}
	case s.refused && !lacking && before == Forbidden:
		return State{Phase: Starting, Text: "it may be listed now"}
	}
	return s.problems.Outcome()
}

// delivered reports whether the first listings are complete and delivered. It waits for the handler.
func (f *Feed) delivered(ctx context.Context) bool {
	all := f.Informers("")
	return len(all) > 0 && !slices.ContainsFunc(all, func(h *watch.Handle) bool {
		return !h.State().Synced || !h.WaitSynced(ctx)
	})
}

// faulty returns the state for an error.
func (f *Feed) faulty(err error) State {
	logged := transport.Unanswered(err) || f.cluster.Outages.Covers(err)
	return State{Phase: Faulty, Text: err.Error(), Logged: logged, NotFound: apierrors.IsNotFound(err)}
}

// fail sets the state of a feed that an error stops. It ignores the cancellation of the feed.
func (f *Feed) fail(err error) {
	if !errors.Is(err, context.Canceled) {
		f.health.Set(f.faulty(err), f.failures())
	}
}

// set sets the state.
func (f *Feed) set(phase Phase, text string) {
	f.health.Set(State{Phase: phase, Text: text}, f.failures())
}

// failures counts those of the informers.
func (f *Feed) failures() (n int) {
	for _, h := range f.Informers("") {
		n += h.State().Failures
	}
	return n
}

// Status returns the status of the feed.
func (f *Feed) Status() Status { return f.health.Status() }

// Settled is closed when the feed runs for the first time, or its first fault is known.
func (f *Feed) Settled() <-chan struct{} { return f.health.Settled() }

// Check returns the status of the feed as a check of that name. If a right is missing, the message ends with by, which names the
// account. A new listing is no fault unless it fails or takes long, and has another message then.
func (f *Feed) Check(name, by string) ops.Check {
	c, now := ops.Check{Name: name}, f.Status()
	if now.Well() {
		if f.Behind() {
			c.Message = "listing again, because the API server's versions have gone back"
		}
		return c
	}
	c.State, c.Message = ops.Warn, string(now.Phase)
	switch {
	case now.Phase == Running:
		c.Message = "watched, but not in every namespace: " + now.Warning
	case now.Message != "":
		c.Message += ": " + now.Message
	}
	if len(f.Missing()) > 0 {
		c.Message += by
	}
	return c
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
)

// survey is the state of a source's informers.
type survey struct {
	problems Problems
	// well is the number of namespaces without a problem. Listing are the namespaces that are not listed yet.
	well    int
	listing []string
	// refused is true if an informer was rejected for a right that the account has now. The informer will ask again.
	refused bool
}

// judge sets the state of the source by its informers. The source is degraded if it works in no namespace. Problems in
// some namespaces are a warning, because users without rights may create them.
func (r *runner) judge(ctx context.Context, missing missingVerbs) (again bool) {
	seen := r.survey(ctx, missing)
	if ctx.Err() != nil {
		return false
	}
	now := seen.outcome(r.Status().Phase, len(missing) > 0)
	if r.health.SetAll(now, r.informers.failures(), seen.problems, seen.listing) {
		r.settings.Handler.Grant()
	}
	if r.settings.Steps != nil && r.informers.delivered(ctx) {
		again = r.settings.Steps.Listed(ctx, now.Phase == Running)
	}
	return again || len(seen.problems) > 0
}

// survey inspects the informers. For an informer without a problem it waits a moment, until the last callback of the
// first listing has returned.
func (r *runner) survey(ctx context.Context, missing missingVerbs) survey {
	out := survey{problems: Problems{}}
	for ns, verbs := range missing {
		out.problems.AddMissing(ns, verbs, r.cluster.Outages.Away()) // a server that has just come back rejects requests that it will soon allow
	}
	for _, ns := range r.informers.opened() {
		h := r.informers.newest(ns)
		now := h.State()
		switch {
		case missing[ns] != nil:
		case now.Fault != nil:
			bad := r.faulty(now.Fault)
			bad.Logged = bad.Logged || r.cluster.Outages.Away() // a silent watch does not know the reason
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

// outcome returns the state of a source after a survey. Lacking is true when a right is missing.
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

// faulty returns the state for an error.
func (r *runner) faulty(err error) State {
	logged := transport.IsUnanswered(err) || r.cluster.Outages.Covers(err)
	return State{Phase: Faulty, Text: err.Error(), Logged: logged, NotFound: apierrors.IsNotFound(err)}
}

// fail sets the state of a source that an error stops. It ignores the cancellation of the source.
func (r *runner) fail(err error) {
	if !errors.Is(err, context.Canceled) {
		r.set(r.faulty(err))
	}
}

// set sets the state of the source as a whole.
func (r *runner) set(now State) { r.health.Set(now, r.informers.failures()) }

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// prune deletes children that no handler makes any longer, once all handlers are through. For a deletion it ends the
// children.
func (p *run) prune(ctx context.Context, st State) (State, error) {
	if st.Searched = true; p.Deletion != "" {
		lacks := !p.hasFinalizer() // somebody has overwritten the object, or removed the finalizer
		st, err := p.endChildren(ctx, st, lacks && p.memory.Finalized, lacks)
		if note := p.heldNote(err); note != nil {
			st = st.noted(*note)
		}
		return st, endingChildren(err)
	}
	ctx = discreet(ctx, p.Rules.Readers...)
	// This does not wait for the handlers: one may fail because of a field that is released here.
	if again := p.family.ReleaseTargets(ctx, transport.NewSpan(p.Host.Held), st.Current); again > 0 {
		st.Due = st.Due.Sooner(again, queue.Due)
	}
	failed := func(r progress.Handler) bool { return st.Attempts.Record(r, p.progress.Entry(r)).Failed }
	if !st.through() || slices.ContainsFunc(p.Rules.Readers, failed) {
		p.memory.Prune.Missed(p.Changes.Child)
		return st, nil
	}
	if !p.family.NeedsPrune(p.Changes.Child, st.Current) {
		return st, nil
	}
	seen := st.Draft
	unsure := func(handler int) bool {
		r := p.Rules.Readers[handler]
		return p.askFilters(seen, r, askFor(r.Handler)).Err != nil
	}
	again, err := p.family.Prune(ctx, transport.NewSpan(p.Host.Held), p.Changes.Child, st.Current, &snapshot{p, st, nil}, unsure)
	if again > 0 {
		st.Due = st.Due.Sooner(again, queue.Due)
	}
	return st, err
}

// endChildren deletes or releases children before the object goes, once all delete handlers are through. Over: this is
// done already. Free: the object lacks the operator's finalizer, so a handler that failed for good holds nothing.
func (p *run) endChildren(ctx context.Context, st State, over, free bool) (State, error) {
	if over || st.Attempts.Open(p.Gone) || p.daemonsEnd() || p.filters.Unsure() || !free && p.isHeldUp(st) {
		return st, nil
	}
	alone := p.hasFinalizer() && (!p.Rules.Finalizes || !p.handlersHold(st.Draft))
	again, open, err := p.family.FinalizeChildren(discreet(ctx, p.Rules.Readers...), transport.NewSpan(p.Host.Held), alone)
	if st.Searched = !open; again > 0 {
		st.Due = st.Due.Sooner(again, queue.Due)
	}
	return st, err
}

// endingChildren wraps an error of endChildren; nil for none.
func endingChildren(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("deleting children of an object that is being deleted: %w", err)
}

// heldNote returns an Event which says that the deletion waits, if reading or deleting children fails repeatedly. It is
// nil if the log covers the error, or if the error passes by itself.
func (p *run) heldNote(err error) *Note {
	if err == nil || !p.memory.Troubles.Has(Itself) || p.Host.Covered(err) || source.IsUnanswered(err) || apierrors.IsConflict(err) {
		return nil
	}
	return &Note{Action: "children", Reason: "DeletionHeld", Message: "Deletion is held: " + err.Error()}
}

// holdsUp reports whether a handler that has failed for good holds the deletion.
func (p *run) holdsUp(d Draft, r progress.Handler) bool {
	if !r.On(dsl.Delete) || r.Release {
		return false
	}
	e := p.progress.Entry(r)
	return e.DeleteDone(p.Deletion) && e.Try.Failed && !e.Try.Ended && p.askFilters(d, r, dsl.Delete).Keeps()
}

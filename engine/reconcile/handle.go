// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// handle runs the handlers that are due: all in their order, or only the handlers that the resource's lifecycle chooses.
func (p *run) handle(ctx context.Context, st State, readers []progress.Handler) (State, error) {
	all := p.Rules.Spec.Lifecycle == nil
	for _, r := range readers {
		var j *Attempt
		p.noteOutcomesRead(st, r)
		if st, j = p.decide(ctx, st, r); j != nil {
			st.Attempts = append(st.Attempts, j)
			if !all {
				continue
			}
			var err error
			if st, err = p.attempt(ctx, st, j); err != nil {
				return st, err
			}
		}
		if p.outcomesRead != nil {
			st = p.publishOutcome(st, r)
		}
	}
	if all {
		return st, nil
	}
	return p.handleChosen(ctx, st)
}

// handleChosen runs the handlers that the resource's lifecycle chooses.
func (p *run) handleChosen(ctx context.Context, st State) (State, error) {
	chosen, err := p.runnable(st).Chosen(p.Rules.Spec.Lifecycle)
	if err != nil {
		st = st.noted(Note{Line: "lifecycle failed; the first handler runs", Err: err, Grave: true})
	}
	for _, j := range st.Attempts {
		if slices.ContainsFunc(chosen, func(r progress.Handler) bool { return r.Handler == j.Reader.Handler }) {
			continue
		}
		w, _ := p.postponed(st, j)
		if w.Reason.None() {
			w.Reason = why.NotChosen
		}
		st.Why = append(st.Why, w)
	}
	for _, r := range chosen {
		var j *Attempt
		p.noteOutcomesRead(st, r)
		st, j = p.decide(ctx, st, r) // handlers before this one may have changed the object
		if st.Attempts = st.Attempts.Replace(r, j); j == nil {
			continue
		}
		if st, err = p.attempt(ctx, st, j); err != nil {
			return st, err
		}
		st = p.publishOutcome(st, r)
	}
	if len(p.runnable(st)) > 0 {
		st.Due = st.Due.AtOnce() // they were not chosen
	} else if wait := st.Attempts.backoff(p.Now); wait > 0 {
		st.Due = st.Due.Sooner(wait, queue.Due)
	}
	return st, nil
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// handle runs the handlers that have something to do: each in its order, or those that the resource's lifecycle chooses.
func (p *run) handle(ctx context.Context, st State) (State, error) {
	readers, all := p.Rules.Readers, p.Rules.Spec.Lifecycle == nil
	if p.Gone && p.memory.Finalized {
		readers = slices.DeleteFunc(slices.Clone(readers), func(r progress.Handler) bool { return !r.On(dsl.Event) })
	}
	for _, r := range readers {
		var j *Attempt
		p.noteOutcomesRead(st, r)
		if st, j = p.decide(ctx, st, r); j != nil {
			st.Jobs = append(st.Jobs, j)
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
	blocked := func(h *dsl.Handler) bool { return p.blocker(st, h) != "" }
	chosen, err := st.Jobs.Chosen(p.Rules.Spec.Lifecycle, blocked, p.Now)
	if err != nil {
		st = st.noted(Note{Line: "lifecycle failed; the first handler runs", Err: err, Grave: true})
	}
	for _, j := range st.Jobs {
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
		st, j = p.decide(ctx, st, r) // what those before it have done to the object counts
		if st.Jobs = st.Jobs.Replace(r, j); j == nil {
			continue
		}
		if st, err = p.attempt(ctx, st, j); err != nil {
			return st, err
		}
		st = p.publishOutcome(st, r)
	}
	switch wait, some := st.Jobs.notRun(blocked, p.Now); {
	case some:
		st.Due = st.Due.AtOnce()
	case wait > 0:
		st.Due = st.Due.Sooner(wait, queue.Due)
	}
	return st, nil
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// observedGeneration returns the generation that handlers saw, for status.observedGeneration; zero if the field is right, or is not
// the engine's. It is not for an object that no handler sees: another operator may have it.
func (p *run) observedGeneration(st State) int64 {
	if !p.Rules.SetsGeneration || p.Deletion != "" || !p.Own.Resource().Status {
		return 0 // without a subresource, each write of the status would be another generation
	}
	now := p.generation()
	_, wanted := st.Patch.Status["observedGeneration"]
	if seen, _ := observedOf(p.Object); seen == now && !wanted {
		return 0
	}
	if !slices.ContainsFunc(p.Rules.Readers, func(r progress.Handler) bool { return p.mayHandle(st, r) }) {
		return 0
	}
	return now
}

// mayHandle reports whether a handler's filters match the object, or may match. It asks those that the reconcile has not asked: others
// may be expensive.
func (p *run) mayHandle(st State, r progress.Handler) bool {
	if w, is := st.whyOf(r); is {
		switch w.Reason {
		case why.WhenFalse, why.NotMatched:
			return false
		case why.WhenFails, why.Ran:
			return true
		}
	}
	return p.askFilters(st.Draft, r, askFor(r.Handler)).Keeps()
}

// ended reports whether all handlers are through with the object's generation, also those that have failed for good.
func (st State) ended() bool {
	open := func(j *Attempt) bool { return !j.Record.Done && !j.Cause.FromClock() && j.Cause != dsl.Event }
	return !st.hasMissingOutcome() && !slices.ContainsFunc(st.Attempts, open)
}

// endedWith reports whether the change leaves nothing of the generation to a later reconcile, either.
func (st State) endedWith(v change) bool { return st.ended() && !v.behind && len(v.rerun) == 0 }

// observedOf returns an object's status.observedGeneration.
func observedOf(o *unstructured.Unstructured) (n int64, found bool) {
	n, found, _ = unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return n, found
}

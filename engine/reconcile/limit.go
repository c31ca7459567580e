// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// isDeletionHeld reports whether a limit holds the delete handlers of an object, before the first of them begins. If it
// does not, the deletion counts as begun, unless only a person asks.
func (s *Controller) isDeletionHeld(a *arrival) (detail string, closed bool) {
	if !a.exists() || a.object().GetDeletionTimestamp() == nil || !s.beginsDeletion(a.object(), a.memory.commonState) {
		return "", false
	}
	x := s.deletion(a.key, a.object(), limits.Deleted)
	ask := s.Limits.Ask
	if a.question {
		ask = s.Limits.Look
	}
	if held := ask(x, a.now); !held.CanBegin() {
		a.held = &held
		return held.String(), true
	}
	a.memory.DeletionBegun = a.memory.DeletionBegun || !a.question
	return "", false
}

// beginsDeletion reports whether a reconcile would begin the delete handlers of an object that exists. It returns false
// if the object no longer has the finalizer, which goes when they are done.
func (s *Controller) beginsDeletion(o metav1.Object, m commonState) bool {
	if !s.hasDeletionAhead(o, m) {
		return false
	}
	return !s.Rules.Finalizes || slices.ContainsFunc(o.GetFinalizers(), func(f string) bool {
		return f == s.Rules.Finalizer || slices.Contains(s.Rules.Earlier, f)
	})
}

// hasDeletionAhead reports whether the delete handlers of an object have neither begun nor finished: in this process, or
// as the stored progress says.
func (s *Controller) hasDeletionAhead(o metav1.Object, m commonState) bool {
	if !s.Rules.DeleteHandlers || m.DeletionBegun || m.Finalized {
		return false
	}
	return !progress.HasBegunDeletion(o.GetAnnotations()[s.Rules.Progress.Annotation], o.GetUID())
}

// deletion returns the question to the limits whether the deletion of an object may begin.
func (s *Controller) deletion(key cache.ObjectName, o metav1.Object, cause limits.Cause) limits.Deletion {
	return limits.Deletion{
		Pool: limits.Pool{Resource: s.Rules.Resource, Kind: s.Own.Resource().Kind}, Owner: limits.Key(key), Object: string(o.GetUID()), Cause: cause,
		Count: func(after time.Time) (all, young int) { return children.Count(slices.Values(s.Own.Objects("")), after) },
	}
}

// holdGone returns how long the delete handlers of an object that is gone have to wait for the limits; zero if they may
// begin.
func (s *Controller) holdGone(key cache.ObjectName, d *Tombstone, now time.Time) time.Duration {
	if !s.hasDeletionAhead(d.Object, d.Memory.commonState) {
		return 0
	}
	cause := limits.Deleted
	if d.Object.GetDeletionTimestamp() == nil && slices.Contains(d.Object.GetFinalizers(), s.Rules.Finalizer) {
		cause = limits.Selector // the API server does not delete an object with a finalizer
	}
	x := s.deletion(key, d.Object, cause)
	x.Gone = true
	held := s.Limits.Ask(x, now)
	d.Memory.DeletionBegun = held.CanBegin()
	return held.After
}

// awaitLimit replaces a reconcile while a limit holds the deletion of the object. It sets the condition DeletionsHeld.
func awaitLimit(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	t.Unpark()
	s.Inbox.SetHealth(a.key, ops.ObjectHealth{Health: ops.Waits, Open: []ops.Open{{Health: ops.Waits, Reason: w.Reason.Brief(a.held.Summary()), Logged: true}}})
	s.idle(ctx, a, w) // last, so that the answer has the present health
	a.due = a.due.Sooner(a.held.After, queue.Due)
	m := a.memory
	if a.held.Reason == limits.RecordPending || m.Held == a.held.Summary() {
		return a.due, nil
	}
	if a.held.Reason == limits.ShareExceeded {
		s.Observer.Events.Warn(a.tree(), "deletion", conditions.DeletionsHeld, "Deletion waits: "+a.held.Summary())
	}
	if s.Rules.Spec.Cache == dsl.CacheMetadata { // a metadata cache shows no conditions
		m.Held = a.held.Summary()
		return a.due, nil
	}
	owed, err := s.say(ctx, a, func(o *unstructured.Unstructured) []metav1.Condition {
		return conditions.List(conditions.HeldFor(o, *a.held, s.Rules.Names))
	})
	if err != nil {
		return a.due, fmt.Errorf("saying that the deletion is held: %w", err)
	}
	if !owed {
		m.Held = a.held.Summary()
	}
	return a.due, nil
}

// ownerOf returns an object of the resource as the owner of deletions.
func (s *Controller) ownerOf(key cache.ObjectName) limits.Owner {
	return limits.Owner{Resource: s.Rules.Resource, Key: limits.Key(key)}
}

// settleLimits ends the wait of deletions that nobody wants any longer, and sets or removes the condition DeletionsHeld.
// Through: all handlers are done, and no child has to be deleted.
func (p *run) settleLimits(st State, through bool, marks *patch.Marks) State {
	held, until := p.Limits.Settle(p.ownerOf(p.Key), through, p.Now)
	switch {
	case held.CanBegin():
		p.memory.Held = ""
		if conditions.IsOwn(p.Object, conditions.DeletionsHeld, p.Rules.Names) && !marks.Remove {
			marks.RemoveConditions = append(marks.RemoveConditions, conditions.DeletionsHeld)
		}
		return st
	case held.Reason == limits.RecordPending: // for a moment
	case p.Rules.Spec.Cache == dsl.CacheMetadata: // a metadata cache shows no conditions
	default:
		marks.Conditions = append(marks.Conditions, conditions.List(conditions.HeldFor(p.Object, held, p.Rules.Names))...)
	}
	if held.Reason == limits.ShareExceeded && p.memory.Held != held.Summary() {
		p.memory.Held = held.Summary()
		st = st.noted(Note{Action: "children", Reason: conditions.DeletionsHeld, Message: "Deletion of children waits: " + held.Summary()})
	}
	st.Due = st.Due.Sooner(until.Sub(p.Now), queue.Due)
	return st
}

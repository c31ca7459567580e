// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/conditions"
)

// awaitResume replaces a reconcile while the object is paused. It stops the object's daemons, and sets the condition
// Paused.
func awaitResume(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	s.Daemons.Pause(a.key)
	s.Limits.Pause(s.ownerOf(a.key))
	t.Unpark()
	switch {
	case !a.exists():
		s.Inbox.SetHealth(a.key, ops.ObjectHealth{}) // an object that is gone does not count as ready or not
	case !a.whole:
		s.Inbox.SetHealth(a.key, ops.ObjectHealth{Health: ops.Paused, Open: []ops.Open{{Health: ops.Paused, Reason: w.Reason.Brief(w.Detail)}}})
	}
	s.idle(ctx, a, w) // last, so that the answer has the present health
	if a.whole {
		return a.due, nil
	}
	if m := a.memory; m.Halt == nil || m.Halt.By != a.pause.By {
		m.Halt = &Halt{By: a.pause.By}
		s.pauseLog(a.key, a.pause.By).Info("object is paused; no handler runs", "reason", a.pause.Reason, "deletionsGoOn", a.pause.Deletions)
	}
	owed, err := s.sayPaused(ctx, a)
	if owed {
		a.due = a.due.Sooner(again, queue.Resync)
	}
	return a.due, err
}

// resumed logs that an object is no longer paused.
func (s *Controller) resumed(key cache.ObjectName, m *ObjectState) {
	s.pauseLog(key, m.Halt.By).Info("object is no longer paused")
	m.Halt = nil
}

// pauseLog returns the log for the pause of an object. A pause of many objects has a line of its own, so theirs are
// verbose.
func (s *Controller) pauseLog(key cache.ObjectName, by pause.By) logr.Logger {
	log := attempt.About{Key: key}.Log(s.Observer.Log)
	if by != pause.Object {
		return log.V(1)
	}
	return log
}

// sayPaused sets the object's condition Paused once. If somebody removes it, it stays removed. Owed: it has to be tried
// again.
func (s *Controller) sayPaused(ctx context.Context, a arrival) (owed bool, err error) {
	now, m := *a.pause, a.memory
	if now.By == pause.Operator || m.Halt.Said == now.String() || s.Rules.Spec.Cache == dsl.CacheMetadata { // it shows no conditions
		return false, nil
	}
	owed, err = s.say(ctx, a, func(o *unstructured.Unstructured) []metav1.Condition { return s.pausedCondition(o, now) })
	if err != nil {
		return false, fmt.Errorf("saying that the object is paused: %w", err)
	}
	if !owed {
		m.Halt.Said = now.String()
	}
	return owed, nil
}

// say writes conditions of the engine to an object that gets no reconcile now. Wanted returns the conditions that an
// object lacks. Owed: they have to be written later.
func (s *Controller) say(ctx context.Context, a arrival, wanted func(*unstructured.Unstructured) []metav1.Condition) (owed bool, err error) {
	o := a.tree()
	marks := patch.Marks{Conditions: wanted(o)}
	if len(marks.Conditions) == 0 {
		return false, nil
	}
	target := s.Writer.Target(o, s.Own.Resource().Generation(o), time.Now())
	result, err := s.Writer.Conditions.Write(ctx, target, dsl.NewPatch(), marks, &owed)
	for err == nil && result.Conflict != nil {
		target = target.After(result)
		marks := patch.Marks{Conditions: wanted(target.Object)}
		result, err = s.Writer.Conditions.Write(ctx, target, dsl.NewPatch(), marks, &owed)
	}
	if errors.Is(err, patch.ErrGone) {
		return false, nil
	}
	if written := result.Object; result.Status || result.Whole {
		s.Observer.Metrics.Wrote(s.Rules.Resource, result.Status, result.Whole)
		a.memory.Writes.Add(inbox.Write{Cache: s.Own, Key: a.key, UID: written.GetUID(), Version: written.GetResourceVersion(), Own: true})
		s.Host.OnWrite(a.key, s.Own.Resource().GVR, written)
	}
	return owed, err
}

// pausedCondition returns the condition that an object lacks. It is empty if the object has it, if the pause is over, or
// if another controller has a condition of that type.
func (s *Controller) pausedCondition(o *unstructured.Unstructured, now pause.Pause) []metav1.Condition {
	if s.Pauses.Of(o) == nil {
		return nil
	}
	return conditions.List(conditions.PausedFor(o, now, s.Rules.Names))
}

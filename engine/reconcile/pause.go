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
)

// PausedCondition is the type of the condition that says that an object is paused.
const PausedCondition = "Paused"

// awaitResume takes the place of a reconcile while the object is paused. Its daemons stop, and it says so.
func awaitResume(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	s.Daemons.Pause(a.key)
	t.Unpark()
	switch {
	case !a.exists():
		s.Inbox.Finished(a.key, ops.Stand{}) // what is gone is not ready
	case !a.whole:
		s.Inbox.Finished(a.key, ops.Stand{Standing: ops.Paused, Open: []ops.Open{{Standing: ops.Paused, Reason: w.Reason.Brief(w.Detail)}}})
	}
	s.idle(ctx, a, w) // after that: an answer has the standing of now
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

// resumed says that an object is not paused any more.
func (s *Controller) resumed(key cache.ObjectName, m *ObjectState) {
	s.pauseLog(key, m.Halt.By).Info("object is no longer paused")
	m.Halt = nil
}

// pauseLog is the log for the pause of an object. A pause of many objects is a line of its own.
func (s *Controller) pauseLog(key cache.ObjectName, by pause.By) logr.Logger {
	log := attempt.About{Key: key}.Log(s.Observer.Log)
	if by != pause.Object {
		return log.V(1)
	}
	return log
}

// sayPaused sets the object's condition, once: if another hand takes it off, it stays off. Owed: that is to be tried again.
func (s *Controller) sayPaused(ctx context.Context, a arrival) (owed bool, err error) {
	now, m := *a.pause, a.memory
	if now.By == pause.Operator || m.Halt.Said == now.String() || s.Rules.Spec.Cache == dsl.CacheMetadata { // which does not show what other conditions there are
		return false, nil
	}
	o := a.tree()
	condition := s.pausedCondition(o, now)
	if condition == nil {
		return false, nil
	}
	target := s.Writer.Target(o, s.Own.Resource().Generation(o), time.Now())
	result, err := s.Writer.Conditions.Write(ctx, target, dsl.NewPatch(), patch.Marks{Condition: condition}, &owed)
	for err == nil && result.Conflict != nil {
		target = target.After(result)
		marks := patch.Marks{Condition: s.pausedCondition(target.Object, now)}
		result, err = s.Writer.Conditions.Write(ctx, target, dsl.NewPatch(), marks, &owed)
	}
	if errors.Is(err, patch.ErrGone) {
		return false, nil
	}
	if written := result.Object; result.Status || result.Whole {
		s.Observer.Metrics.Wrote(s.Rules.Resource, result.Status, result.Whole)
		m.Writes.Add(inbox.Write{Cache: s.Own, Key: a.key, UID: written.GetUID(), Version: written.GetResourceVersion(), Own: true})
		s.Host.Announce(a.key, s.Own.Resource().GVR, written)
	}
	if err != nil {
		return false, fmt.Errorf("saying that the object is paused: %w", err)
	}
	if !owed {
		m.Halt.Said = now.String()
	}
	return owed, nil
}

// pausedCondition is the condition that an object lacks; nil where it has it, where it is not paused any more, and where another
// controller has a condition of that type.
func (s *Controller) pausedCondition(o *unstructured.Unstructured, now pause.Pause) *metav1.Condition {
	if s.Pauses.Of(o) == nil {
		return nil
	}
	want := metav1.Condition{Type: PausedCondition, Status: metav1.ConditionTrue, Reason: "Annotation", Message: sayAs(s.Rules.Operator.Name) + now.String()}
	if now.By == pause.Namespace {
		want.Reason = "Namespace"
	}
	there := ConditionOf(o, PausedCondition)
	message := ConditionText(there, "message")
	if name, _ := cutName(message, s.Rules.Names); there != nil && (name == "" || message == want.Message && ConditionText(there, "reason") == want.Reason) {
		return nil
	}
	return &want
}

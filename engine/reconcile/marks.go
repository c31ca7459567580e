// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

// renamed moves what the operator has left on an object under its earlier names, before the reconcile opens the progress. So the rest
// of the reconcile knows one name. Only an object that is being deleted keeps the earlier finalizer, for the server takes no new one.
// It returns the object as it is then, nil when it is gone.
func (s *Controller) renamed(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, m *ObjectState) (*unstructured.Unstructured, error) {
	if !s.Writer.Renamer.Finds(o) {
		return o, nil
	}
	moved, err := s.Writer.move(ctx, key, o, func(now *unstructured.Unstructured) { s.wroteMarks(key, now, m) })
	if err != nil || moved == nil {
		return nil, err
	}
	s.logMoved(key, o)
	return s.Writer.Shown(moved), nil
}

// takenOver moves the mark with which an earlier version of the operator has marked an object as handled in status.observedGeneration,
// before the reconcile opens the progress. It returns the object as it is then, nil when it is gone.
func (s *Controller) takenOver(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, m *ObjectState) (*unstructured.Unstructured, error) {
	if m.Ledger.Known() || !s.Writer.hasMarker(o) {
		return o, nil
	}
	now, err := s.Writer.takeOver(ctx, key, o, func(now *unstructured.Unstructured) { s.wroteMarks(key, now, m) })
	if err != nil || now == nil {
		return nil, err
	}
	return s.Writer.Shown(now), nil
}

// renewed renews the operator's own entries in the managedFields of an object whose CRD has dropped their version, once in a process.
// It returns the object as it is then. A failure holds up nothing, and the next reconcile tries again: the log has it once.
func (s *Controller) renewed(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, m *ObjectState) *unstructured.Unstructured {
	renewer := s.Others.Renewer
	if m.Renewed || len(o.GetManagedFields()) == 0 || !renewer.Finds(ctx, o) {
		return o
	}
	log := s.logOf(Input{Key: key, Object: o}, attempt.About{})
	now, err := renewer.Renew(ctx, s.Others.Clients.Client(s.Own.Resource().GVR, key.Namespace), o)
	said := m.Unrenewed
	m.Renewed, m.Unrenewed = err == nil, ""
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // the event of what others did brings the next reconcile
		return o
	case err != nil:
		if m.Unrenewed = err.Error(); m.Unrenewed == said {
			return o
		}
		log.Info("entries in managedFields of a version that the CRD has dropped could not be renewed", logmark.Warning, true, "error", err.Error())
		return o
	case now == nil:
		return o
	}
	s.wroteMarks(key, now, m)
	log.Info("renewed entries in managedFields of a version that the CRD has dropped")
	return s.Writer.Shown(now)
}

// wroteMarks notes a write to an object before the reconcile over it.
func (s *Controller) wroteMarks(key cache.ObjectName, now *unstructured.Unstructured, m *ObjectState) {
	s.Observer.Metrics.Wrote(s.Rules.Resource, false, true)
	m.Writes.Add(inbox.Write{Cache: s.Own, Key: key, UID: now.GetUID(), Version: now.GetResourceVersion(), Own: true})
	s.Host.Announce(key, s.Own.Resource().GVR, now)
}

// logMoved says that marks of earlier names were moved.
func (s *Controller) logMoved(key cache.ObjectName, o *unstructured.Unstructured) {
	s.logOf(Input{Key: key, Object: o}, attempt.About{}).Info("moved what the operator had left on the object under an earlier name", "was", s.Rules.Operator.Was)
}

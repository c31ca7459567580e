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

// renamed moves the operator's marks from its earlier names to its present one, before the reconcile opens the progress.
// An object that is being deleted keeps the earlier finalizer, because the server accepts no new one. It returns the
// object after that, nil if it is gone.
func (s *Controller) renamed(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, m *ObjectState) (*unstructured.Unstructured, error) {
	if !s.Writer.Renamer.Finds(o) {
		return o, nil
	}
	moved, err := s.Writer.move(ctx, key, o)
	s.wroteMarks(key, moved.Written, m)
	if err != nil || moved.Object == nil {
		return nil, err
	}
	s.logMoved(key, o)
	return s.Writer.Shown(moved.Object), nil
}

// takenOver moves the mark of an earlier version of the operator in status.observedGeneration to the state annotation,
// before the reconcile opens the progress. It returns the object after that, nil if it is gone.
func (s *Controller) takenOver(ctx context.Context, key cache.ObjectName, o *unstructured.Unstructured, m *ObjectState) (*unstructured.Unstructured, error) {
	if m.Progress.Known() || !s.Writer.hasMarker(o) {
		return o, nil
	}
	taken, err := s.Writer.takeOver(ctx, key, o)
	s.wroteMarks(key, taken.Written, m)
	if err != nil || taken.Object == nil {
		return nil, err
	}
	return s.Writer.Shown(taken.Object), nil
}

// renewed moves the operator's own entries in managedFields to a served version, if the CRD has dropped theirs. It
// returns the object after that. A failure is logged once; the reconcile goes on, and the next one tries again.
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
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // the event of the other write starts a reconcile
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
	s.wroteMarks(key, []*unstructured.Unstructured{now}, m)
	log.Info("renewed entries in managedFields of a version that the CRD has dropped")
	return s.Writer.Shown(now)
}

// wroteMarks notes writes to an object before the reconcile over it.
func (s *Controller) wroteMarks(key cache.ObjectName, written []*unstructured.Unstructured, m *ObjectState) {
	for _, now := range written {
		s.Observer.Metrics.Wrote(s.Rules.Resource, false, true)
		m.Writes.Add(inbox.Write{Cache: s.Own, Key: key, UID: now.GetUID(), Version: now.GetResourceVersion(), Own: true})
		s.Host.OnWrite(key, s.Own.Resource().GVR, now)
	}
}

// logMoved logs that marks of earlier names were moved.
func (s *Controller) logMoved(key cache.ObjectName, o *unstructured.Unstructured) {
	s.logOf(Input{Key: key, Object: o}, attempt.About{}).Info("moved what the operator had left on the object under an earlier name", "was", s.Rules.Operator.Was)
}

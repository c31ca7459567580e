// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
)

// settling is how many retry periods a lock of an earlier name must rest after it was released: a standby of that name may
// take it within a retry period and its jitter.
const settling = 2.2

// awaitEarlier waits until no process leads by a lock that the operator had under an earlier name. It returns false when ctx
// has ended. Pod is the uid of this process's pod, empty where that is not known.
func (e *Elector) awaitEarlier(ctx context.Context, pod types.UID) bool {
	for _, name := range e.set.Earlier {
		if !e.awaitLock(ctx, name, pod) {
			return false
		}
	}
	return ctx.Err() == nil
}

// awaitLock is awaitEarlier for one lock.
func (e *Elector) awaitLock(ctx context.Context, name string, pod types.UID) bool {
	looks, said := e.newLife(pod), ""
	shown := e.set.Namespace + "/" + name
	for ctx.Err() == nil {
		lock, err := e.set.leases().Get(ctx, name, metav1.GetOptions{})
		free := apierrors.IsNotFound(err)
		if err == nil {
			free, err = looks.left(ctx, lock)
		}
		switch {
		case free:
			if said != "" {
				e.set.Log.Info("no process leads under the operator's earlier name any more", "lock", shown)
			}
			return true
		case err != nil:
			looks.complaints.report(ctx, fmt.Errorf("looking whether a process leads under the operator's earlier name, by lease %s: %w", shown, err))
		default:
			if leader := holder(lock); said != leader+"." {
				said = leader + "."
				e.set.Log.Info("a process may lead under the operator's earlier name; this one waits until it has stopped",
					logmark.Warning, true, "lock", shown, "leader", leader)
			}
		}
		e.set.pause(ctx)
	}
	return false
}

// left reports whether no process holds a lock of an earlier name.
func (l *life) left(ctx context.Context, lock *coordinationv1.Lease) (bool, error) {
	switch renewed := lock.Spec.RenewTime; {
	case len(lock.OwnerReferences) > 0:
		if l.uid != "" && l.owns(lock) {
			return true, nil // our container was restarted under another name
		}
		return l.abandoned(ctx, lock)
	case holder(lock) != "":
		return l.foreign.expired(lock), nil
	case renewed == nil || time.Since(renewed.Time) > DefaultLeaseDuration:
		return true, nil
	}
	l.foreign.expired(lock) // notes when it was seen
	return time.Since(l.foreign.since) > time.Duration(settling*float64(l.set.RetryPeriod)), nil
}

func holder(lock *coordinationv1.Lease) string {
	if lock.Spec.HolderIdentity == nil {
		return ""
	}
	return *lock.Spec.HolderIdentity
}

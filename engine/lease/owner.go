// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownLock is a Lease that the garbage collector deletes with our pod. Processes that run in mode
// lease, as during a change of modes, take it for one that does not expire.
func (l *life) ownLock() *coordinationv1.Lease {
	forever, now := int32(math.MaxInt32), metav1.NowMicro()
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: l.set.Name, Namespace: l.set.Namespace,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Pod", Name: l.set.PodName, UID: l.uid},
			},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &l.set.PodName, LeaseDurationSeconds: &forever, AcquireTime: &now, RenewTime: &now,
		},
	}
}

func ownedBy(lock *coordinationv1.Lease, pod types.UID) bool {
	return slices.ContainsFunc(lock.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == pod })
}

// abandoned reports whether nobody leads by the lock any more: its pod is gone, is another one of
// that name, or has ended for good, as it has when it was evicted or its node went away.
func (l *life) abandoned(ctx context.Context, lock *coordinationv1.Lease) (bool, error) {
	i := slices.IndexFunc(lock.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Pod" })
	if i < 0 {
		return l.foreign.expired(lock), nil
	}
	owner := lock.OwnerReferences[i]
	pod, err := l.set.Client.CoreV1().Pods(l.set.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the leader's pod %s/%s: %w", l.set.Namespace, owner.Name, err)
	}
	// No container of a pod in these phases runs or will run again.
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	return pod.UID != owner.UID || ended, nil
}

// sighting is what was last seen of a lock without a pod: one of mode lease, from before the mode
// was changed.
type sighting struct {
	uid     types.UID
	version string
	since   time.Time
}

// expired reports whether the lock is free, or was not renewed for its duration. As in mode lease
// only our own clock counts.
func (s *sighting) expired(lock *coordinationv1.Lease) bool {
	if s.uid != lock.UID || s.version != lock.ResourceVersion {
		*s = sighting{uid: lock.UID, version: lock.ResourceVersion, since: time.Now()}
	}
	if lock.Spec.HolderIdentity == nil || *lock.Spec.HolderIdentity == "" {
		return true
	}
	duration := DefaultLeaseDuration
	if told := lock.Spec.LeaseDurationSeconds; told != nil {
		duration = time.Duration(*told) * time.Second
	}
	return time.Since(s.since) > duration
}

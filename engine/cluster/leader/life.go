// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
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

// life is one campaign and, when it is won, one term in mode life.
type life struct {
	*Elector
	complaints complaints
	uid        types.UID // of our pod
	leads      string    // who the log says leads, and since when
	foreign    sighting
}

// newLife returns a campaign of this process, whose pod may be unknown yet.
func (e *Elector) newLife(pod types.UID) *life {
	return &life{Elector: e, complaints: complaints{set: &e.set}, uid: pod}
}

// lifeTerm waits until the lock is ours and leads.
func (e *Elector) lifeTerm(ctx context.Context, lead func(context.Context) error) (lost bool, err error) {
	l := e.newLife("")
	e.set.Log.Info("Trying to become the leader", "lock", e.set.lockName())
	if err := l.identify(ctx); err != nil {
		return false, err
	}
	if !e.awaitEarlier(ctx, l.uid) || !l.win(ctx) {
		return false, nil
	}
	e.set.Log.Info("Became the leader.", "lock", e.set.lockName())
	lost, err = e.hold(ctx, e.namesakes.alone(ctx, lead), l.keep, l.owns)
	if errors.Is(err, errNamesake) {
		l.resign(ctx)
	}
	return lost, err
}

// identify finds out our pod's UID. It tries again until ctx ends, unless there is no such pod.
func (l *life) identify(ctx context.Context) error {
	for {
		pod, err := l.set.Client.Pod(ctx, l.set.Namespace, l.set.PodName)
		if err == nil {
			l.uid = pod.UID
			return nil
		}
		err = fmt.Errorf("reading our own pod %s/%s: %w", l.set.Namespace, l.set.PodName, err)
		l.trouble.Store(&err)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%w (POD_NAME must be metadata.name, and the lock in the pod's namespace)", err)
		}
		l.complaints.report(ctx, err)
		if !l.set.pause(ctx) {
			return nil
		}
	}
}

// win returns true when the lock is ours, false when ctx has ended.
func (l *life) win(ctx context.Context) bool {
	waiting := false
	for ctx.Err() == nil {
		begun := time.Now()
		ours, err := l.try(ctx)
		if l.trouble.Store(nil); err != nil {
			l.trouble.Store(&err)
		}
		switch {
		case ours:
			l.fence.renew(begun)
			return true
		case err != nil:
			l.complaints.report(ctx, err)
		case !waiting:
			waiting = true
			l.set.Log.Info("Not the leader. Waiting.", "lock", l.set.lockName())
		}
		l.set.pause(ctx)
	}
	return false
}

// try looks at the lock once, and takes it if it is free.
func (l *life) try(ctx context.Context) (ours bool, err error) {
	lock, err := l.set.leases().Get(ctx, l.set.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return l.create(ctx)
	case err != nil:
		return false, l.failed("reading", err)
	case l.owns(lock):
		return true, nil // our container was restarted
	}
	l.logLeader(lock)
	if left, err := l.abandoned(ctx, lock); err != nil || !left {
		return false, err
	}
	l.set.Log.Info("deleting the lock of a leader that is gone", "lock", l.set.lockName())
	if err := l.remove(ctx, lock); err != nil {
		return false, err
	}
	return l.create(ctx)
}

// logLeader logs who leads and since when, once for each term.
func (l *life) logLeader(lock *coordinationv1.Lease) {
	leader, since := "", lock.CreationTimestamp.Time
	if lock.Spec.HolderIdentity != nil {
		leader = *lock.Spec.HolderIdentity
	}
	if lock.Spec.AcquireTime != nil {
		since = lock.Spec.AcquireTime.Time
	}
	at := since.UTC().Format(time.RFC3339)
	if known := l.leads; leader != "" && known != leader+at {
		l.leads = leader + at
		l.leader.Store(&leader)
		l.set.Log.Info("another process leads", "lock", l.set.lockName(), "leader", leader, "since", at)
	}
}

func (l *life) create(ctx context.Context) (ours bool, err error) {
	_, err = l.set.leases().Create(ctx, l.ownLock(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil // somebody else was faster
	}
	return err == nil, l.failed("creating", err)
}

// remove deletes a lock, but no other one than that which was looked at.
func (l *life) remove(ctx context.Context, lock *coordinationv1.Lease) error {
	err := l.set.leases().Delete(ctx, l.set.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lock.UID, ResourceVersion: &lock.ResourceVersion},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // somebody else was faster
	}
	return l.failed("deleting", err)
}

// resign deletes the lock that this process has taken and does not lead by.
func (l *life) resign(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.set.RenewDeadline)
	defer cancel()
	lock, err := l.set.leases().Get(ctx, l.set.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return
	case err != nil:
		err = l.failed("reading", err)
	case l.owns(lock):
		err = l.remove(ctx, lock)
	}
	if err != nil {
		l.complaints.report(ctx, err)
	}
}

// keep looks at the lock until it is not ours. While it cannot be read, the fence closes after the
// limit, and opens when it is seen to be ours still.
func (l *life) keep(ctx context.Context) {
	for l.set.pause(ctx) {
		begun := time.Now()
		lock, err := l.set.leases().Get(ctx, l.set.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && !l.owns(lock):
			return
		case err != nil:
			l.complaints.report(ctx, l.failed("reading", err))
		default:
			l.fence.renew(begun)
		}
	}
}

func (l *life) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s lease %s: %w", doing, l.set.lockName(), err)
}

// ownLock is a Lease that the garbage collector deletes with our pod. Processes that run in mode
// lease, as during a change of modes, take it for one that does not expire.
func (l *life) ownLock() *coordinationv1.Lease {
	forever, now := int32(math.MaxInt32), metav1.NowMicro()
	lock := &coordinationv1.Lease{
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
	l.set.Scope.mark(lock)
	return lock
}

func (l *life) owns(lock *coordinationv1.Lease) bool {
	return slices.ContainsFunc(lock.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == l.uid })
}

// abandoned reports whether the lock has lost its leader: its pod is gone, is another one of
// that name, or has ended for good, as it has when it was evicted or its node went away.
func (l *life) abandoned(ctx context.Context, lock *coordinationv1.Lease) (bool, error) {
	i := slices.IndexFunc(lock.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Pod" })
	if i < 0 {
		return l.foreign.expired(lock), nil
	}
	owner := lock.OwnerReferences[i]
	pod, err := l.set.Client.Pod(ctx, l.set.Namespace, owner.Name)
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
	if seconds := lock.Spec.LeaseDurationSeconds; seconds != nil {
		duration = time.Duration(*seconds) * time.Second
	}
	return time.Since(s.since) > duration
}

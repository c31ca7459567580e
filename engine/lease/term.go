// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// leaseTerm is one campaign and, when it is won, one term in mode lease.
//
// Client-go's elector would release the lease before lead has returned, on a loss as well as at
// the end. So it does not release at all, has a context of its own that outlives lead, and the
// release is done here.
func (e *Elector) leaseTerm(ctx context.Context, lead func(context.Context) error) (lost bool, err error) {
	l, err := e.newLock()
	if err != nil {
		return false, err
	}
	won := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          l,
		Name:          e.set.Name,
		LeaseDuration: e.set.LeaseDuration,
		RenewDeadline: e.set.RenewDeadline,
		RetryPeriod:   e.set.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(won) },
			OnStoppedLeading: func() {},
			OnNewLeader:      e.led,
		},
	})
	if err != nil {
		return false, fmt.Errorf("setting up leader election: %w", err)
	}
	campaign, stop := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), withRivalry(e.set.Log)))
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { elector.Run(campaign) })
	select {
	case <-won:
		// Who has lost is no candidate before lead has returned: a Lease that he renewed would keep
		// others from leading while he does not.
		guard := func(ctx context.Context) {
			e.awaitExpiry(ctx)
			stop()
		}
		lost, err = e.office(ctx, lead, guard, e.holdsLease)
	case <-ctx.Done():
	}
	stop()
	running.Wait()
	if !lost {
		e.release(ctx, l)
	}
	return lost, err
}

// led says who leads instead of this process, once for each.
func (e *Elector) led(identity string) {
	if identity == "" {
		return
	}
	if before := e.leader.Swap(&identity); identity != e.set.Identity && (before == nil || *before != identity) {
		e.set.Log.Info("another process leads", "lock", e.lockName(), "leader", identity)
	}
}

// awaitExpiry returns when the last renewal is too old, whatever the elector hopes for.
func (e *Elector) awaitExpiry(ctx context.Context) {
	for left := e.fence.left(); left > 0; left = e.fence.left() {
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return
		}
	}
}

func (e *Elector) holdsLease(lock *coordinationv1.Lease) bool {
	return lock.Spec.HolderIdentity != nil && *lock.Spec.HolderIdentity == e.set.Identity
}

func (e *Elector) newLock() (*lock, error) {
	inner, err := resourcelock.New(resourcelock.LeasesResourceLock, e.set.Namespace, e.set.Name,
		e.set.Client.CoreV1(), e.set.Client.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: e.set.Identity})
	if err != nil {
		return nil, fmt.Errorf("setting up the lock: %w", err)
	}
	return &lock{Interface: inner, fence: &e.fence, lose: e.leave, patience: e.set.RenewDeadline}, nil
}

func (e *Elector) release(ctx context.Context, l *lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.set.RenewDeadline)
	defer cancel()
	if err := l.release(ctx); err != nil {
		e.set.Log.Error(err, "the others have to wait until the lease expires", "lock", e.lockName())
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if !e.awaitEarlier(ctx, "") {
		return false, nil
	}
	l := e.newLock()
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
		// A loser is no candidate before lead has returned: a Lease that it renewed would keep
		// others from leading while it does not.
		guard := func(ctx context.Context) {
			e.awaitExpiry(ctx)
			stop()
		}
		lost, err = e.hold(ctx, e.namesakes.alone(ctx, lead), guard, e.holdsLease)
	case <-ctx.Done():
	}
	stop()
	running.Wait()
	if !lost {
		e.release(ctx, l)
	}
	return lost, err
}

// led logs that another process leads, once for each such process.
func (e *Elector) led(identity string) {
	if identity == "" {
		return
	}
	if before := e.leader.Swap(&identity); identity != e.set.Identity && (before == nil || *before != identity) {
		e.set.Log.Info("another process leads", "lock", e.set.lockName(), "leader", identity)
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

func (e *Elector) newLock() *lock {
	inner := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: e.set.Namespace, Name: e.set.Name},
		Client:     marking{e.set.Client.CoordinationV1(), e.set.Scope},
		LockConfig: resourcelock.ResourceLockConfig{Identity: e.set.Identity},
	}
	return &lock{Interface: inner, elector: e, patience: e.set.RenewDeadline}
}

func (e *Elector) release(ctx context.Context, l *lock) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.set.RenewDeadline)
	defer cancel()
	if err := l.release(ctx); err != nil {
		e.set.Log.Error(err, "releasing the lease failed; other processes wait until it expires", "lock", e.set.lockName())
	}
}

// lock is the Lease as client-go's elector sees it. It reports each renewal to the fence, and
// gives up the leadership when the Lease shows that it is not ours. It is for one campaign.
type lock struct {
	resourcelock.Interface
	elector  *Elector
	patience time.Duration
	tried    bool // to write, so the Lease may be ours
}

// Get reads the Lease. The elector takes it for renewed when its text differs, and counts from then. The
// text that client-go makes has whole seconds, so a second renewal within one would go unseen, and the
// Lease would be taken over too early: here it has the exact time besides.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := l.through(ctx)
	defer cancel()
	record, raw, err := l.Interface.Get(ctx)
	if !apierrors.IsNotFound(err) {
		l.elector.asked("reading", err)
	}
	if apierrors.IsNotFound(err) || err == nil && record.HolderIdentity != l.Identity() {
		// A Lease that is gone is anybody's: whoever creates it leads, and may have done so.
		l.elector.leave()
	}
	if err == nil {
		raw = strconv.AppendInt(raw, record.RenewTime.UnixNano(), 10)
	}
	return record, raw, err
}

// Create writes the first record.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update takes over the Lease or renews it.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lock) write(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	ctx, cancel := l.through(ctx)
	defer cancel()
	l.tried = true
	begun := time.Now()
	err := send(ctx, record)
	l.elector.asked("writing", err)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		l.elector.fence.recheck() // somebody else wrote the Lease, or deleted it
	}
	if err != nil {
		return err
	}
	if l.elector.fence.isOpen() && l.elector.fence.left() <= 0 {
		// Too late: writes were refused meanwhile and somebody else may have led. The term is
		// over, and the next one begins again.
		l.elector.leave()
	}
	l.elector.fence.renew(begun)
	return nil
}

// through lets a request that is on its way come to its end: an aborted one leaves it open whether
// the Lease was written, and looks like an error in the log when the process just stops.
func (l *lock) through(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), l.patience)
}

// release makes the Lease free if it is ours. It is called when the elector has ended.
func (l *lock) release(ctx context.Context) error {
	const tries = 3 // somebody may write to the Lease without wanting to hold it
	if !l.tried {
		return nil
	}
	var err error
	for range tries {
		var record *resourcelock.LeaderElectionRecord
		record, _, err = l.Interface.Get(ctx)
		if apierrors.IsNotFound(err) || err == nil && record.HolderIdentity != l.Identity() {
			return nil
		}
		if err == nil {
			now := metav1.Now()
			err = l.Interface.Update(ctx, resourcelock.LeaderElectionRecord{
				LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
			})
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("releasing lease %s: %w", l.Describe(), err)
	}
	return nil
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is the Lease as client-go's elector sees it. It tells the fence about each renewal, and
// loses the leadership when the Lease shows that it is not ours. It is for one campaign.
type lock struct {
	resourcelock.Interface
	fence    *fence
	lose     func()
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
	if apierrors.IsNotFound(err) || err == nil && record.HolderIdentity != l.Identity() {
		// A Lease that is gone is anybody's: whoever creates it leads, and may have done so.
		l.lose()
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
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		l.fence.doubt() // somebody else wrote the Lease, or deleted it
	}
	if err != nil {
		return err
	}
	if l.fence.isOpen() && l.fence.left() <= 0 {
		// Too late: writes were refused meanwhile and somebody else may have led. The term is
		// over, and the next one begins anew.
		l.lose()
	}
	l.fence.renew(begun)
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

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"sync"

	"github.com/handwerk-dev/handwerk/dsl"
)

// office is a term from its begin to its end: it opens the fence, calls lead, and closes the fence
// after lead has returned, or when leadership is lost: when guard returns before its context ends,
// or when the fence was closed from elsewhere. Ours tells whether a lock is this process's.
//
// Lead's context does not end with ctx. Leadership is kept while lead comes to its end after that,
// and it may be lost then as at any time.
func (e *Elector) office(
	ctx context.Context, lead func(context.Context) error, guard func(context.Context), ours holds,
) (lost bool, err error) {
	e.set.Changed(true)
	shut := e.fence.start()
	inOffice, leave := context.WithCancelCause(context.WithoutCancel(ctx))
	defer leave(nil)
	watch, relax := context.WithCancel(context.WithoutCancel(ctx))
	defer relax()
	var guards sync.WaitGroup
	guards.Go(func() {
		e.until(watch, shut, guard, ours)
		if watch.Err() == nil {
			lost = true
			reason := loss(shut)
			e.leave()
			leave(ErrLost)
			e.set.Log.Info("lost leadership", dsl.LogWarning, true, "lock", e.lockName(), "reason", reason)
		}
	})
	err = lead(inOffice)
	relax()
	guards.Wait()
	e.leave()
	return lost, err
}

// loss says why leadership is lost.
func loss(shut <-chan struct{}) string {
	select {
	case <-shut:
		return "the lock is not this process's any more"
	default:
		return "the lock was not renewed in time"
	}
}

// until looks after the leadership, and returns when it is lost or ctx ends.
func (e *Elector) until(ctx context.Context, shut <-chan struct{}, guard func(context.Context), ours holds) {
	ctx, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	helpers.Go(func() { e.examine(ctx, ours) })
	helpers.Go(func() { e.listen(ctx, ours) })
	helpers.Go(func() {
		defer stop()
		select {
		case <-shut:
		case <-ctx.Done():
		}
	})
	guard(ctx)
	stop()
	helpers.Wait()
}

// leave closes the fence.
func (e *Elector) leave() {
	if e.fence.stop() {
		e.set.Changed(false)
	}
}

func (e *Elector) lockName() string { return e.set.Namespace + "/" + e.set.Name }

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"sync"
)

// office is a term from its begin to its end: it opens the fence, calls lead, and closes the fence
// after lead has returned, or when guard does. Guard watches over the leadership until its context
// ends or until it is lost; the channel that it gets is closed when the fence was closed from
// elsewhere.
func (e *Elector) office(
	ctx context.Context, lead func(context.Context) error,
	guard func(ctx context.Context, shut <-chan struct{}),
) (lost bool, err error) {
	e.set.Changed(true)
	shut := e.fence.start()
	inOffice, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	// Leadership is kept while lead comes to its end after ctx has ended.
	watch, relax := context.WithCancel(context.WithoutCancel(ctx))
	var guards sync.WaitGroup
	guards.Go(func() {
		guard(watch, shut)
		if watch.Err() == nil {
			lost = true
			e.leave()
			leave(ErrLost)
			e.set.Log.Info("lost leadership", "lock", e.lockName())
		}
	})
	err = lead(inOffice)
	relax()
	guards.Wait()
	e.leave()
	return lost, err
}

// leave closes the fence.
func (e *Elector) leave() {
	if e.fence.stop() {
		e.set.Changed(false)
	}
}

func (e *Elector) lockName() string { return e.set.Namespace + "/" + e.set.Name }

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// holds reports whether a lock is this process's.
type holds func(*coordinationv1.Lease) bool

// examiner reads the lock of a term at each sign that somebody else has it. The fence is shut meanwhile.
type examiner struct {
	set   *Settings
	fence *fence
	ours  holds
	term  interface{ leave() }
}

// examine reads the lock at each sign that somebody else has it, and ends the term when it is so.
// It returns when ctx ends.
func (x *examiner) examine(ctx context.Context) {
	for {
		select {
		case <-x.fence.asked:
			x.clear(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// clear reads the lock until there is no question any more.
func (x *examiner) clear(ctx context.Context) {
	logged := false
	for q, open := x.fence.question(); open && ctx.Err() == nil; q, open = x.fence.question() {
		lock, err := x.read(ctx)
		switch {
		case apierrors.IsNotFound(err), err == nil && !x.ours(lock):
			x.term.leave()
		case err == nil:
			x.fence.trust(q)
		default:
			if !logged && ctx.Err() == nil {
				x.set.Log.Error(err, "reading the lock failed; writes wait", "lock", x.set.lockName())
				logged = true
			}
			x.set.pause(ctx)
		}
	}
}

func (x *examiner) read(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, x.set.RenewDeadline)
	defer cancel()
	return x.set.leases().Get(ctx, x.set.Name, metav1.GetOptions{})
}

// listen watches the lock until ctx ends, for signs that somebody else has it: so a leader that
// has nothing to write and nothing to renew just now knows as well. It does without where that is
// not allowed.
func (x *examiner) listen(ctx context.Context) {
	if x.set.Watcher == nil {
		return
	}
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, x.set.Name).String()}
	for ctx.Err() == nil {
		stream, err := x.set.Watcher.CoordinationV1().Leases(x.set.Namespace).Watch(ctx, only)
		switch {
		case apierrors.IsForbidden(err):
			x.set.Log.V(1).Info("this process may not watch the lock, so it notices later when somebody takes it", "lock", x.set.lockName())
			return
		case err == nil:
			x.readWatch(ctx, stream)
		}
		x.set.pause(ctx)
	}
}

// readWatch takes the signs of one watch. A watch may report an old state, so it decides nothing itself.
func (x *examiner) readWatch(ctx context.Context, stream apiwatch.Interface) {
	defer stream.Stop()
	for {
		select {
		case event, more := <-stream.ResultChan():
			if !more {
				return
			}
			lock, is := event.Object.(*coordinationv1.Lease)
			if is && lock.Name == x.set.Name && (event.Type == apiwatch.Deleted || !x.ours(lock)) {
				x.fence.recheck()
			}
		case <-ctx.Done():
			return
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// jitter keeps processes from asking in step.
const jitter = 0.2

// holds tells of a lock whether it is ours.
type holds func(*coordinationv1.Lease) bool

// examine reads the lock at each sign that somebody else has it, and ends the term when it is so.
// It returns when ctx ends.
func (e *Elector) examine(ctx context.Context, ours holds) {
	for {
		select {
		case <-e.fence.asked:
			e.clear(ctx, ours)
		case <-ctx.Done():
			return
		}
	}
}

// clear reads the lock until there is no doubt any more.
func (e *Elector) clear(ctx context.Context, ours holds) {
	told := false
	for signs, in := e.fence.doubts(); in && ctx.Err() == nil; signs, in = e.fence.doubts() {
		lock, err := e.read(ctx)
		switch {
		case apierrors.IsNotFound(err), err == nil && !ours(lock):
			e.leave()
		case err == nil:
			e.fence.trust(signs)
		default:
			if !told && ctx.Err() == nil {
				e.set.Log.Error(err, "cannot tell who is the leader, writes wait", "lock", e.lockName())
				told = true
			}
			e.pause(ctx)
		}
	}
}

func (e *Elector) read(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, e.set.RenewDeadline)
	defer cancel()
	return e.set.Client.CoordinationV1().Leases(e.set.Namespace).Get(ctx, e.set.Name, metav1.GetOptions{})
}

// listen watches the lock until ctx ends, for signs that somebody else has it: so a leader that
// has nothing to write and nothing to renew just now knows as well. It does without where that is
// not allowed.
func (e *Elector) listen(ctx context.Context, ours holds) {
	if e.set.Watcher == nil {
		return
	}
	only := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, e.set.Name).String()}
	for ctx.Err() == nil {
		stream, err := e.set.Watcher.CoordinationV1().Leases(e.set.Namespace).Watch(ctx, only)
		switch {
		case apierrors.IsForbidden(err):
			e.set.Log.V(1).Info("this process may not watch the lock, so it notices later when somebody takes it", "lock", e.lockName())
			return
		case err == nil:
			e.hear(ctx, stream, ours)
		}
		e.pause(ctx)
	}
}

// hear takes the signs of one watch. A watch may tell what is over, so it decides nothing itself.
func (e *Elector) hear(ctx context.Context, stream apiwatch.Interface, ours holds) {
	defer stream.Stop()
	for {
		select {
		case event, more := <-stream.ResultChan():
			if !more {
				return
			}
			lock, is := event.Object.(*coordinationv1.Lease)
			if is && lock.Name == e.set.Name && (event.Type == apiwatch.Deleted || !ours(lock)) {
				e.fence.doubt()
			}
		case <-ctx.Done():
			return
		}
	}
}

// pause waits for about the retry period. It returns false when ctx has ended.
func (e *Elector) pause(ctx context.Context) bool {
	select {
	case <-time.After(wait.Jitter(e.set.RetryPeriod, jitter)):
		return true
	case <-ctx.Done():
		return false
	}
}

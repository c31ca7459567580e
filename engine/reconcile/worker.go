// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cluster/backoff"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
)

const (
	// reconcileBackoff and mostReconcileBackoff bound the wait after a reconcile that could not be finished.
	reconcileBackoff     = 500 * time.Millisecond
	mostReconcileBackoff = 5 * time.Minute
	// mostRejectedBackoff bounds it after a rejection by a policy, or for a right that only reconciles use: no event
	// tells when that is over.
	mostRejectedBackoff = time.Minute
)

// errParked says that a reconcile did not begin, because a cache is behind this operator's writes. errCaughtUp says that
// the cache has caught up in the meantime.
var (
	errParked   = errors.New("the cache is behind the operator's own writes")
	errCaughtUp = errors.New("the cache was behind the operator's own writes")
)

// errShort ends a reconcile that did not begin for lack of memory. The budget queues its key when there is enough.
var errShort = errors.New("other reconciles hold the memory that it takes")

// Work takes keys of the resource until the queue is shut down. Several of these run; the queue never gives one key to two of them.
func (s *Controller) Work(ctx context.Context, q *queue.Queue[cache.ObjectName]) {
	for {
		key, stopped := q.Get()
		if stopped {
			return
		}
		s.reconcileKey(ctx, q, key)
		q.Done(key)
	}
}

// reconcileKey runs one reconcile, and queues the key for when it is due next.
func (s *Controller) reconcileKey(ctx context.Context, q *queue.Queue[cache.ObjectName], key cache.ObjectName) {
	end := s.Running.Begin(key)
	if q.OnlyAsked(key) {
		s.Account(ctx, key)
		end()
		return
	}
	next, err := s.traced(ctx, key)
	end()
	switch {
	case ctx.Err() != nil:
		// Leadership or the process is ending. The next leader looks at every object again.
	case errors.Is(err, errParked), errors.Is(err, errShort):
		// Other work of the key, such as for an object that is gone, does not wait for the cache.
		next = next.Sooner(inbox.Patience, queue.Due)
		q.AddAfter(key, next.Class, next.After)
	case errors.Is(err, errCaughtUp):
		q.Add(key, queue.Fresh)
	case err != nil:
		q.AddAfter(key, queue.Due, next.After)
	case next.Now:
		q.Add(key, next.Class)
	case next.After > 0:
		q.AddAfter(key, next.Class, next.After)
	}
}

// traced runs a reconcile in a span, if there is a tracer. A reconcile that did not begin has not failed.
func (s *Controller) traced(ctx context.Context, key cache.ObjectName) (queue.Next, error) {
	if s.Tracer == nil {
		return s.Reconcile(ctx, key)
	}
	ctx = s.Tracer.Start(ctx, "reconcile", "resource", s.Rules.Resource, "namespace", key.Namespace, "name", key.Name)
	next, err := s.Reconcile(ctx, key)
	if hasFailed(ctx, err) {
		s.Tracer.End(ctx, err)
	} else {
		s.Tracer.End(ctx, nil)
	}
	return next, err
}

// hasFailed reports whether a reconcile ended with an error. One that did not begin has not failed, and neither has one
// that the end of the leadership or the process interrupts.
func hasFailed(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() == nil && !errors.Is(err, errParked) && !errors.Is(err, errShort) && !errors.Is(err, errCaughtUp)
}

// failed counts and logs a reconcile that could not be finished, and returns how long the key waits. It does not log
// errors for which one line stands, nor conflicts that pass.
func (s *Controller) failed(key cache.ObjectName, t *Batch, err error) (wait time.Duration) {
	s.noteRequest(key, err)
	stored := &t.Memory
	if gone, is := errors.AsType[goneError](err); is {
		stored = &gone.of.Memory
	}
	before, m := t.Failed(err), (*stored).Open()
	m.UID = cmp.Or(m.UID, t.UID)
	defer func() { *stored = m.Stored() }()
	wait = min(reconcileBackoff<<min(before, 12), mostReconcileBackoff)
	if backoff.IsRejected(err) {
		wait = min(wait, mostRejectedBackoff)
	}
	wait += rand.N(wait / 5)
	conflict := apierrors.IsConflict(err)
	named := !s.Host.Logged(err) && (!conflict || before+1 >= manyFailures)
	f := attempt.Failure{
		Log: s.Observer.Log.WithValues("namespace", key.Namespace, "name", key.Name, "retryAfter", wait.Round(time.Millisecond).String()),
		Key: key, Err: err, Line: "reconcile could not be finished",
		Grave: !conflict && before > 0, // a first failure is tried again in half a second
		Due:   time.Now().Add(wait),
	}
	if !named {
		m.Troubles.Failed(Itself, false)
		f.LogVerbose()
		return wait
	}
	m.Troubles.Say(s.Observer.Texts, Itself, f)
	return wait
}

// Park parks a key until the cache has caught up. It returns the error with which the reconcile ends.
func Park(t *Batch, m *ObjectState) error {
	if t.Park(&m.Writes) {
		return errParked
	}
	return errCaughtUp
}

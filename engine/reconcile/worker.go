// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
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
	// passBackoff and passBackoffMost bound the wait after a reconcile that could not be finished.
	passBackoff     = 500 * time.Millisecond
	passBackoffMost = 5 * time.Minute
	// passRefusedMost bounds it where a right was missing that passes alone know of, or a policy refused: no event wakes
	// them when that is over.
	passRefusedMost = time.Minute
)

// errParked says that a reconcile did not begin, because the cache is behind this operator's writes; errCaughtUp that it was
// so, and is not any more.
var (
	errParked   = errors.New("the cache is behind the operator's own writes")
	errCaughtUp = errors.New("the cache was behind the operator's own writes")
)

// errShort ends a reconcile that did not begin because others hold the memory that it takes. Its key is queued when there is enough.
var errShort = errors.New("other reconciles hold the memory that it takes")

// Worker works on the keys of one resource. All fields are required.
type Worker struct {
	*Controller
}

// Work takes keys until the queue is shut down. Several of these run; the queue never gives one key to two of them.
func (w Worker) Work(ctx context.Context, q *queue.Queue[cache.ObjectName]) {
	for {
		key, stopped := q.Get()
		if stopped {
			return
		}
		w.handle(ctx, q, key)
		q.Done(key)
	}
}

// handle runs one reconcile and decides when the key is due next.
func (w Worker) handle(ctx context.Context, q *queue.Queue[cache.ObjectName], key cache.ObjectName) {
	end := w.Running.Begin(key)
	if q.OnlyAsked(key) {
		w.Account(ctx, key)
		end()
		return
	}
	next, err := w.Run(ctx, key)
	end()
	switch {
	case ctx.Err() != nil:
		// Leadership or the process is ending: whoever works next looks at everything again.
	case errors.Is(err, errParked), errors.Is(err, errShort):
		// What was due besides, as for an object of this key that is gone, does not wait for the cache.
		next = next.Sooner(inbox.Patience, queue.Due)
		q.AddAfter(key, next.Class, next.After)
	case errors.Is(err, errCaughtUp):
		q.Add(key, queue.Fresh)
	case err != nil:
		next = next.Sooner(w.unfinished(key, err), queue.Due)
		q.AddAfter(key, queue.Due, next.After)
	case next.Now:
		q.Add(key, next.Class)
	case next.After > 0:
		q.AddAfter(key, next.Class, next.After)
	}
}

// unfinished counts a reconcile that could not be finished, says so, and returns how long the key waits. An error that is logged
// once for all is not logged again, nor a conflict that passes.
func (w Worker) unfinished(key cache.ObjectName, err error) (wait time.Duration) {
	w.passRefused(key, err)
	before, m := w.Inbox.Failed(key, err, newMemory)
	defer m.Wake().Sleep()
	wait = min(passBackoff<<min(before, 12), passBackoffMost)
	if backoff.Refused(err) {
		wait = min(wait, passRefusedMost)
	}
	wait += rand.N(wait / 5)
	conflict := apierrors.IsConflict(err)
	named := !w.Host.Logged(err) && (!conflict || before+1 >= manyFailures)
	f := attempt.Failure{
		Log: w.Observer.Log.WithValues("namespace", key.Namespace, "name", key.Name, "retryAfter", wait.Round(time.Millisecond).String()),
		Key: key, Err: err, Line: "reconcile could not be finished",
		Grave: !conflict && before > 0, // a first failure is tried again in half a second
		Due:   time.Now().Add(wait),
	}
	if !named {
		m.Troubles.Failed(Itself, false)
		f.LogVerbose()
		return wait
	}
	m.Troubles.Say(w.Observer.Texts, Itself, f)
	return wait
}

// Park puts a key aside until the cache has caught up. The error is what its reconcile is to end with.
func Park(t *Batch, m *ObjectState) error {
	if t.Park(&m.Writes) {
		return errParked
	}
	return errCaughtUp
}

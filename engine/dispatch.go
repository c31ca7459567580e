// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/progress"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

const (
	// passBackoff and passBackoffMost bound the wait after a pass that could not be finished.
	passBackoff     = 500 * time.Millisecond
	passBackoffMost = 5 * time.Minute
)

// errParked says that a pass did not begin, because the cache is behind this operator's writes.
var errParked = errors.New("the cache is behind the operator's own writes")

// errCaughtUp says that a pass did not begin for that reason, which is gone meanwhile.
var errCaughtUp = errors.New("the cache was behind the operator's own writes")

// work takes keys until the queue is shut down. Several of these run for a resource; the queue
// never gives one key to two of them.
func (r *resource) work(ctx context.Context, q *queue.Queue[cache.ObjectName]) {
	for {
		key, stopped := q.Get()
		if stopped {
			return
		}
		r.handle(ctx, q, key)
		q.Done(key)
	}
}

// handle runs one pass and decides when the key is due next. No other place does.
func (r *resource) handle(ctx context.Context, q *queue.Queue[cache.ObjectName], key cache.ObjectName) {
	end := r.busy.Begin(key)
	next, err := r.pass(ctx, key)
	end()
	switch {
	case ctx.Err() != nil:
		// Leadership or the process is ending: whoever works next looks at everything again.
	case errors.Is(err, errParked):
		// What was due besides, as for an object of this key that is gone, does not wait for the cache.
		next = next.sooner(inbox.Patience, queue.Due)
		q.AddAfter(key, next.class, next.after)
	case errors.Is(err, errCaughtUp):
		q.Add(key, queue.Fresh)
	case err != nil:
		q.AddAfter(key, queue.Due, r.unfinished(key, err))
	case next.now:
		q.Add(key, next.class)
	case next.after > 0:
		q.AddAfter(key, next.class, next.after)
	}
}

// unfinished counts a pass that could not be finished, says so, and returns how long the key waits. What is said
// once for all is not said again, nor a conflict that passes.
func (r *resource) unfinished(key cache.ObjectName, err error) (wait time.Duration) {
	r.refused(key, passItself, err)
	before, m := r.box.Failed(key, newMemory)
	wait = min(passBackoff<<min(before, 12), passBackoffMost)
	if apierrors.IsForbidden(err) {
		wait = min(wait, passRefusedMost)
	}
	wait += rand.N(wait / 5)
	conflict := apierrors.IsConflict(err)
	told := !r.engine.said(err) && (!conflict || before+1 >= manyFailures)
	m.troubled(passItself, told)
	log := r.log.WithValues("namespace", key.Namespace, "name", key.Name, "again", wait.Round(time.Millisecond).String())
	const line = "pass could not be finished"
	switch {
	case !told:
		log.V(1).Info(line, "error", err.Error())
	case conflict:
		log.Info(line, dsl.LogWarning, true, "error", err.Error())
	default:
		log.Error(err, line)
	}
	return wait
}

// due is when a key must be looked at again; zero means not before something happens.
type due struct {
	after time.Duration
	class queue.Class
	// now: it is, as soon as the cache shows what was written.
	now bool
}

// atOnce returns what is due now.
func (d due) atOnce() due { return due{time.Nanosecond, queue.Fresh, true} }

// sooner returns the earlier of two.
func (d due) sooner(after time.Duration, class queue.Class) due {
	after = max(after, time.Nanosecond)
	if d.after == 0 || after < d.after {
		return due{after, class, d.now}
	}
	return d
}

// refusedMost and passRefusedMost bound the wait after a handler or a pass was refused for lack of a
// right. What the feeds ask for themselves wakes those who wait for it; this is for rights that only
// handlers know of, as that to create a child.
const (
	refusedMost     = 30 * time.Second
	passRefusedMost = time.Minute
)

// passItself stands for the pass's own requests among the handlers that were refused: its write, and
// its look for an object that nobody saw go.
const passItself = ""

// refused notes how a handler, or one of the pass's own requests, ended: whether a right was missing.
func (r *resource) refused(key cache.ObjectName, handler string, err error) {
	missing := apierrors.IsForbidden(err)
	if r.box.Refused(key, handler, missing) && !missing {
		r.engine.access.Retry()
	}
	if missing && handler == passItself {
		r.own.Suspect(key.Namespace)
	}
}

// bounded returns the record with a wait that is not too long for one who was refused. Whoever asked
// for a longer one keeps it.
func bounded(r progress.Record, h *dsl.Handler, err error, now time.Time) progress.Record {
	_, asked := dsl.IsTemporary(err)
	if r.Done || asked || !apierrors.IsForbidden(err) {
		return r
	}
	if most := now.Add(max(refusedMost, h.Backoff.Initial)); r.Due.After(most) {
		r.Due = most
	}
	return r
}

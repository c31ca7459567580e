// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/memory"
	"github.com/handwerk-dev/handwerk/engine/plan"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

const (
	// passBackoff and passBackoffMost bound the wait after a pass that could not be finished.
	passBackoff     = 500 * time.Millisecond
	passBackoffMost = 5 * time.Minute
	// passRefusedMost bounds it where a right was missing of which passes alone know, so that nobody wakes them.
	passRefusedMost = time.Minute
)

// errParked says that a pass did not begin, because the cache is behind this operator's writes; errCaughtUp that it was
// so, and is not any more.
var (
	errParked   = errors.New("the cache is behind the operator's own writes")
	errCaughtUp = errors.New("the cache was behind the operator's own writes")
)

// work takes keys until the queue is shut down. Several of these run; the queue never gives one key to two of them.
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
	r.engine.trim.Passed()
	switch {
	case ctx.Err() != nil:
		// Leadership or the process is ending: whoever works next looks at everything again.
	case errors.Is(err, errParked):
		// What was due besides, as for an object of this key that is gone, does not wait for the cache.
		next = next.Sooner(inbox.Patience, queue.Due)
		q.AddAfter(key, next.Class, next.After)
	case errors.Is(err, errCaughtUp):
		q.Add(key, queue.Fresh)
	case err != nil:
		next = next.Sooner(r.unfinished(key, err), queue.Due)
		q.AddAfter(key, queue.Due, next.After)
	case next.Now:
		q.Add(key, next.Class)
	case next.After > 0:
		q.AddAfter(key, next.Class, next.After)
	}
}

// unfinished counts a pass that could not be finished, says so, and returns how long the key waits. What is said
// once for all is not said again, nor a conflict that passes.
func (r *resource) unfinished(key cache.ObjectName, err error) (wait time.Duration) {
	r.refused(key, passItself, err)
	before, m := r.box.Failed(key, memory.New)
	defer m.Wake().Sleep()
	wait = min(passBackoff<<min(before, 12), passBackoffMost)
	if apierrors.IsForbidden(err) {
		wait = min(wait, passRefusedMost)
	}
	wait += rand.N(wait / 5)
	conflict := apierrors.IsConflict(err)
	told := !r.engine.said(err) && (!conflict || before+1 >= plan.ManyFailures)
	m.Troubles.Failed(passItself, told)
	log := r.log.WithValues("namespace", key.Namespace, "name", key.Name, "retryAfter", wait.Round(time.Millisecond).String())
	const line = "pass could not be finished"
	switch {
	case !told:
		log.V(1).Info(line, "error", err.Error())
	case conflict:
		log.Info(line, logmark.Warning, true, "error", err.Error())
	default:
		log.Error(err, line)
	}
	return wait
}

// announce makes the passes over an object that the operator handles, too, wait for what one over another has
// written to it.
func (r *resource) announce(by inbox.Key, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	key := cache.MetaObjectToName(o)
	for other := range r.engine.resources.All {
		if other == r && key == by || !other.own.Serves(gvr) {
			continue
		}
		if h := other.own.Informer(key.Namespace); h != nil && h.Selects(key, o.GetLabels()) {
			other.box.Expect(inbox.Write{Cache: other.own, Key: key, UID: o.GetUID(), Version: o.GetResourceVersion(), Own: true})
		}
	}
}

// caughtUp reports whether the cache shows this operator's last writes to the object, its children and what else
// its handlers wrote to, as far as the server knows of them.
func (r *resource) caughtUp(ctx context.Context, m *memory.Memory) bool {
	return m == nil || m.Writes.Shown() || m.Writes.Recall(ctx, r.engine.reader)
}

// park puts a key aside until the cache has caught up.
func park(t *turn, m *memory.Memory) error {
	if t.Park(&m.Writes) {
		return errParked
	}
	return errCaughtUp
}

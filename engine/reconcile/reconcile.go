// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// Reconcile runs one reconcile for a key, and returns when the key is due next.
func (s *Controller) Reconcile(ctx context.Context, key cache.ObjectName) (queue.Next, error) {
	batch := s.Inbox.Take(key)
	defer batch.Close()
	next, err := s.reconcile(ctx, key, batch)
	if hasFailed(ctx, err) {
		next = next.Sooner(s.failed(key, batch, err), queue.Due)
	}
	return next, err
}

// reconcile runs a reconcile over a schedule, or over the objects of a key that are gone and then the object that the
// cache has.
func (s *Controller) reconcile(ctx context.Context, key cache.ObjectName, batch *Batch) (queue.Next, error) {
	if h := s.scheduleOf(key); h != nil {
		return s.reconcileSchedule(ctx, key, *h, batch)
	}
	halt := s.Pauses.Around(key.Namespace, true)
	if s.Rules.Digests && (halt == nil || halt.By != pause.Operator) {
		if err := s.Host.Keyed(ctx); err != nil {
			memory := batch.Memory.Open().expecting(batch.Expected, batch.Awaited)
			batch.Memory = memory.Stored()
			return queue.Next{}, err
		}
	}
	if s.Host.IsKey(key.Namespace, key.Name) {
		batch.Handled()
		return queue.Next{}, nil
	}
	due, goneErr := s.reconcileGone(ctx, key, batch, halt)
	if ctx.Err() != nil {
		return queue.Next{}, goneErr
	}
	memory := batch.Memory.Open().expecting(batch.Expected, batch.Awaited)
	next, err := s.reconcileObject(ctx, key, batch, &memory, halt, due)
	if batch.Memory = nil; memory.UID != "" {
		batch.Memory = memory.Stored()
	}
	if !errors.Is(err, errShort) {
		s.Budget.Leave(s.budgetKey(key)) // the key may have been woken because memory was free, and then have stopped at another gate
	}
	if errors.Is(err, errParked) || errors.Is(err, errShort) {
		return next, cmp.Or(goneErr, err) // objects that are gone do not wait for caches or memory
	}
	return next, cmp.Or(err, goneErr) // an error of earlier objects of the key does not keep its present object from a reconcile
}

// reconcileObject reconciles the object that the cache has under the key. Memory is the state of that object, which it
// replaces. Halt is the pause that holds the key, nil for none. Due is when the key is due for objects that are gone.
func (s *Controller) reconcileObject(ctx context.Context, key cache.ObjectName, batch *Batch, memory *ObjectState, halt *pause.Pause, due queue.Next) (queue.Next, error) {
	a, err := s.arrive(ctx, key, batch, memory, halt)
	if err != nil {
		return queue.Next{}, err
	}
	if a.due = due; !a.exists() && !a.whole {
		s.forget(key, batch, memory)
		return due, nil
	}
	if a.replaced {
		batch.Memory.Gone()
		batch.Replaced()
	}
	if g, w := s.closedGate(&a); g != nil {
		return g.wait(ctx, s, a, batch, w)
	}
	defer a.returnShare()
	batch.Unpark()
	p, st, err := s.openObject(ctx, a)
	if p == nil {
		return due, err
	}
	if behind, err := p.awaitsChild(ctx); err != nil {
		return queue.Next{}, err
	} else if behind {
		return awaitCache(ctx, s, a, batch, Why{Reason: why.CacheBehind})
	}
	st.Due = due
	return p.finish(batch, p.run(ctx, st))
}

// run takes the steps of a reconcile over an object that the cache has.
func (p *run) run(ctx context.Context, st State) Result {
	st, err := p.observe(ctx, st)
	if err == nil {
		st, err = p.handle(ctx, st, p.Rules.Readers)
	}
	if errors.Is(err, patch.ErrGone) {
		return p.vanished(st)
	}
	if err == nil {
		st, err = p.prune(ctx, st)
	}
	if err != nil {
		return p.abandon(st, err)
	}
	st, change := p.settle(p.keepConditions(ctx, st))
	if st, change, err = p.write(ctx, st, change); err != nil {
		return p.abandon(st, err)
	}
	return p.conclude(p.remember(st, change), change)
}

// finish closes the batch of a reconcile, and returns when the key is due next.
func (p *run) finish(batch *Batch, out Result) (queue.Next, error) {
	p.Observer.Reconciled(p, out)
	if out.Err != nil {
		batch.Event = ""                          // the entries of unfinished handlers have the event
		batch.Related = &inbox.Related{All: true} // the relations may be noted, and their changes not be handled
		return queue.Next{}, out.Err
	}
	if len(out.Echoes) > 0 {
		p.memory.Writes.Tidy() // drops the writes that caches have shown meanwhile
		batch.LeaveIdle(p.Object.GetUID(), out.Echoes, &p.memory.Writes)
	}
	batch.Handled()
	return out.Due, nil
}

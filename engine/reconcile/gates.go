// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// gate keeps reconciles over an object from beginning while it is closed. The changes of the object stay for the reconcile that begins
// once all gates are open.
type gate struct {
	reason why.Reason
	// closed reports whether the gate is closed for an object, with the facts where the reason does not say all.
	closed func(*Controller, arrival) (detail string, closed bool)
	// wait puts the key off until the gate may be open, and answers what is asked about the object.
	wait func(context.Context, *Controller, arrival, *Batch, Why) (queue.Next, error)
}

// gates are asked in this order, by each reconcile before it begins and for each answer to why. The first closed one decides. What lasts
// longest stands first, and the memory last: a reconcile that another gate stops must not take its share.
var gates = []gate{
	{why.ScopeLeft, (*Controller).hasLeftScope, awaitReturn},
	{why.Paused, (*Controller).isPaused, awaitResume},
	{why.CacheBehind, (*Controller).isBehind, awaitCache},
	{why.BreakerOpen, (*Controller).isLooping, awaitBreaker},
	{why.MemoryShort, (*Controller).isShort, awaitMemory},
}

// closedGate returns the first gate that is closed for an object, and why; the gate is nil while all are open.
func (s *Controller) closedGate(a arrival) (*gate, Why) {
	for i, g := range gates {
		if detail, closed := g.closed(s, a); closed {
			return &gates[i], Why{Reason: g.reason, Detail: detail}
		}
	}
	return nil, Why{}
}

// arrival is an object before the gates, with what is known of it there.
type arrival struct {
	key cache.ObjectName
	// version is the object as the cache has it, and live as the API server has it where the cache has keys alone; both are nil where
	// there is no object.
	version *cached.Object
	live    *unstructured.Unstructured
	// pause is the one that holds the object; nil for none. Whole: it holds the operator, deletions too, so no object is looked at.
	pause *pause.Pause
	whole bool
	// memory is what is remembered of the object. Changes are what came up for it since its last reconcile.
	memory  *ObjectState
	changes inbox.Changes
	// current: caches show this operator's own writes.
	current bool
	now     time.Time
	// due is when the key is due for objects that are gone.
	due queue.Next
	// short reports whether other reconciles hold so much memory, in bytes, as this one takes. It is asked once.
	short func(bytes int) bool
}

// arrive finds the object that a batch is about. Halt is the pause that holds whatever has its key, nil for none.
func (s *Controller) arrive(ctx context.Context, key cache.ObjectName, t *Batch, halt *pause.Pause) (arrival, error) {
	a := arrival{key: key, pause: halt, memory: t.Memory, changes: t.Changes, now: time.Now()}
	a.current = a.memory.CaughtUp(ctx, s.Host.Read) // asked before the read, which is then no older than that
	a.version, _ = s.Own.Get(key)
	if a.whole = halt != nil && halt.By == pause.Operator; a.whole || a.version == nil {
		return a, nil
	}
	if s.Rules.Spec.Cache == dsl.CacheLive {
		live, err := s.readLive(ctx, key)
		if a.live = live; live == nil {
			a.version = nil
			return a, err
		}
	}
	object := a.object()
	a.pause = s.Pauses.Of(object)
	if uid := object.GetUID(); a.memory == nil || a.memory.UID != uid {
		a.memory = newMemory(uid).expecting(t.Expected, nil)
		a.current = !slices.ContainsFunc(t.Expected, func(w inbox.Write) bool { return w.UID == uid })
	}
	return a, nil
}

// readLive reads an object of which the cache has the key alone; nil when it is gone.
func (s *Controller) readLive(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
	object, err := s.Host.Read(ctx, s.Own.Resource().GVR, key)
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	return object, nil
}

// exists reports whether there is an object.
func (a arrival) exists() bool { return a.version != nil }

// object returns what the gates know of an object that exists.
func (a arrival) object() metav1.Object {
	if a.live != nil {
		return a.live
	}
	return a.version
}

// tree returns the object as a reconcile reads it; nil where there is none, and where only its key is known.
func (a arrival) tree() *unstructured.Unstructured {
	if a.live != nil || a.version == nil {
		return a.live
	}
	return a.version.Tree()
}

// hasLeftScope reports whether the object's namespace is outside the scope. The object is about to go from the cache.
func (s *Controller) hasLeftScope(a arrival) (detail string, closed bool) {
	return "", a.exists() && s.Own.Leaves(a.key.Namespace)
}

// awaitReturn keeps the changes, should the namespace come back.
func awaitReturn(ctx context.Context, s *Controller, a arrival, _ *Batch, w Why) (queue.Next, error) {
	s.idle(ctx, a, w)
	return a.due.Sooner(source.ListingLook, queue.Due), nil
}

// isPaused reports whether the object is paused, and why.
func (s *Controller) isPaused(a arrival) (detail string, closed bool) {
	if a.pause == nil {
		return "", false
	}
	return a.pause.String(), true
}

// isBehind reports whether caches do not show this operator's own writes yet.
func (s *Controller) isBehind(a arrival) (detail string, closed bool) { return "", !a.current }

// awaitCache puts the key aside until caches have caught up.
func awaitCache(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	s.idle(ctx, a, w)
	return a.due, Park(t, a.memory)
}

// isLooping reports whether the object is held back because its reconciles write again and again. A deletion is not held back.
func (s *Controller) isLooping(a arrival) (detail string, closed bool) {
	return "", a.memory.Breaker.Wait(a.now) > 0 && a.object().GetDeletionTimestamp() == nil
}

// awaitBreaker waits until the next reconcile is allowed as a probe.
func awaitBreaker(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	t.Unpark()
	s.idle(ctx, a, w)
	return a.due.Sooner(a.memory.Breaker.Wait(a.now), queue.Due), nil
}

// isShort reports whether other reconciles hold the memory that this one takes.
func (s *Controller) isShort(a arrival) (detail string, closed bool) { return "", a.short(a.bytes()) }

// awaitMemory waits for the memory. The key is queued when there is enough.
func awaitMemory(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	t.Short()
	s.idle(ctx, a, w)
	return a.due, errShort
}

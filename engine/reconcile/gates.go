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
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// gate keeps reconciles over an object from beginning while it is closed. The changes of the object wait in the inbox
// until all gates are open.
type gate struct {
	reason why.Reason
	// closed reports whether the gate is closed for an object. Detail has facts that the reason lacks.
	closed func(*Controller, *arrival) (detail string, closed bool)
	// wait returns when the key is due again, and answers questions of people about the object.
	wait func(context.Context, *Controller, arrival, *Batch, Why) (queue.Next, error)
}

// gates are asked in this order, before each reconcile and for each question of a person. The first closed gate decides.
// The longest waits come first. Memory comes last: a reconcile that stops at another gate must not take a share of it.
var gates = []gate{
	{why.ScopeLeft, (*Controller).hasLeftScope, awaitReturn},
	{why.Paused, (*Controller).isPaused, awaitResume},
	{why.CacheBehind, (*Controller).isBehind, awaitCache},
	{why.BreakerOpen, (*Controller).isLooping, awaitBreaker},
	{why.DeletionsHeld, (*Controller).isDeletionHeld, awaitLimit},
	{why.MemoryShort, (*Controller).isShort, awaitMemory},
}

// closedGate returns the first gate that is closed for an object, and the reason. The gate is nil if all are open.
func (s *Controller) closedGate(a *arrival) (*gate, Why) {
	for i, g := range gates {
		if detail, closed := g.closed(s, a); closed {
			return &gates[i], Why{Reason: g.reason, Detail: detail}
		}
	}
	return nil, Why{}
}

// arrival is an object before the gates.
type arrival struct {
	key cache.ObjectName
	// version is the object in the cache. live is the object on the API server, if the cache has only keys. Both are nil
	// if there is no object.
	version *cached.Object
	live    *unstructured.Unstructured
	// pause holds the object; nil for none. whole: the whole operator is paused, also for deletions, so no object is
	// read.
	pause *pause.Pause
	whole bool
	// memory is the state of the object in this process. Replaced: the state of the last reconcile was another object's.
	memory   *ObjectState
	replaced bool
	// changes are the events since the last reconcile.
	changes inbox.Changes
	// current: caches show this operator's own writes.
	current bool
	now     time.Time
	// due is when the key is due for objects that are gone.
	due queue.Next
	// question: a person asks about the object, and no reconcile begins.
	question bool
	// held is why the deletion of the object waits; nil if it does not.
	held *limits.Answer
	// share is the memory that the reconcile may use, once the gates are open.
	share *children.Share
}

// arrive reads the object of a batch. Memory is the state of the key's last object. If the object is another one, arrive
// replaces the state. Halt is the pause that holds everything under the key, nil for none.
func (s *Controller) arrive(ctx context.Context, key cache.ObjectName, t *Batch, memory *ObjectState, halt *pause.Pause) (arrival, error) {
	a := arrival{key: key, pause: halt, memory: memory, changes: t.Changes, now: time.Now()}
	a.current = a.memory.CaughtUp(ctx, s.Host.Read) // before the read, so that the read is at least as new
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
	if uid := object.GetUID(); memory.UID != uid {
		a.replaced = memory.UID != ""
		*memory = newState(uid).expecting(t.Expected, nil)
		a.current = !slices.ContainsFunc(t.Expected, func(w inbox.Write) bool { return w.UID == uid })
	}
	return a, nil
}

// readLive reads an object from the API server, because the cache has only its key. It returns nil if the object is
// gone.
func (s *Controller) readLive(ctx context.Context, key cache.ObjectName) (*unstructured.Unstructured, error) {
	object, err := s.Host.Read(ctx, s.Own.Resource().GVR, key)
	if err != nil {
		return nil, fmt.Errorf("reading object: %w", err)
	}
	return object, nil
}

// exists reports whether the cache, and the API server if it was asked, have the object.
func (a arrival) exists() bool { return a.version != nil }

// object returns the metadata of an object that exists.
func (a arrival) object() metav1.Object {
	if a.live != nil {
		return a.live
	}
	return a.version
}

// tree returns the object for a reconcile; nil if there is none, or if only its key is known.
func (a arrival) tree() *unstructured.Unstructured {
	if a.live != nil || a.version == nil {
		return a.live
	}
	return a.version.Tree()
}

// hasLeftScope reports whether the object's namespace is outside the scope. The cache will drop the object soon.
func (s *Controller) hasLeftScope(a *arrival) (detail string, closed bool) {
	return "", a.exists() && s.Own.Leaves(a.key.Namespace)
}

// awaitReturn keeps the changes, because the namespace may return.
func awaitReturn(ctx context.Context, s *Controller, a arrival, _ *Batch, w Why) (queue.Next, error) {
	s.idle(ctx, a, w)
	return a.due.Sooner(source.ListingInterval, queue.Due), nil
}

// isPaused reports whether the object is paused, and by which pause.
func (s *Controller) isPaused(a *arrival) (detail string, closed bool) {
	if a.pause == nil {
		return "", false
	}
	return a.pause.String(), true
}

// isBehind reports whether a cache lacks one of this operator's own writes.
func (s *Controller) isBehind(a *arrival) (detail string, closed bool) { return "", !a.current }

// awaitCache parks the key until caches have this operator's own writes.
func awaitCache(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	s.idle(ctx, a, w)
	return a.due, Park(t, a.memory)
}

// isLooping reports whether the breaker holds the object back, because its reconciles write again and again. Deletions
// go on.
func (s *Controller) isLooping(a *arrival) (detail string, closed bool) {
	return "", a.memory.Breaker.Wait(a.now) > 0 && a.object().GetDeletionTimestamp() == nil
}

// awaitBreaker waits until the breaker allows a reconcile as a probe.
func awaitBreaker(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	t.Unpark()
	s.idle(ctx, a, w)
	return a.due.Sooner(a.memory.Breaker.Wait(a.now), queue.Due), nil
}

// isShort reports whether others use the memory that this reconcile needs. A reconcile takes its share here; a question takes none.
func (s *Controller) isShort(a *arrival) (detail string, closed bool) {
	who := s.budgetKey(a.key)
	if a.question {
		return "", s.Budget.Lacks(who, a.bytes())
	}
	a.share = s.Budget.Take(who, a.bytes(), s.Inbox)
	return "", a.share == nil
}

// returnShare gives the memory of a reconcile back, and remembers how much it grew.
func (a *arrival) returnShare() {
	a.memory.Grown = a.share.Grown()
	a.share.Return()
}

// awaitMemory waits for memory. The budget queues the key when there is enough.
func awaitMemory(ctx context.Context, s *Controller, a arrival, t *Batch, w Why) (queue.Next, error) {
	t.WaitForMemory()
	s.idle(ctx, a, w)
	return a.due, errShort
}

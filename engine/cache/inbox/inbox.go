// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package inbox keeps the changes of objects between their reconciles: events of informers, the operator's own writes,
// and granted rights. A reconcile takes the changes of its key, and returns them if it breaks off. The inbox also keeps
// the memory of each object, and the reasons why reconciles left it unfinished.
package inbox

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/cache/tombstone"
	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

// Key is a key of the queue: of an object, or of handlers that run for the resource as a whole.
type Key = cache.ObjectName

// Inbox is the inbox of one resource. M is the memory that the process has of an object. The inbox works within a term
// of leadership. Outside of one, it only keeps objects that leave. Its methods may be called at any time from any
// goroutine.
type Inbox[M any] struct {
	owner Owner
	lines lines
	// ready is the health that all objects without open handlers share.
	ready *objectHealth

	mu sync.Mutex
	// queue is nil while this process does not lead.
	queue *queue.Queue[Key]
	keys  map[Key]*state[M]
	// waiting are parked keys by the UIDs of the objects whose events wake them.
	waiting map[types.UID][]Key
	refused refusals
	// left are objects that left while another process may have led. That process may have died before it finalized
	// them.
	left map[types.UID]*cached.Object
	// unlogged are keys with waits to be logged later, or with echoes that may not come. The timer checks them next at
	// checkAt; it is nil if there are none.
	unlogged map[Key]bool
	timer    *time.Timer
	checkAt  time.Time
}

// Changes are the changes of a key since its last reconcile.
type Changes struct {
	// Fresh is true if the object appeared after the first listing. It stays true as long as the object exists.
	Fresh bool
	// Event is the last event of the object, or empty.
	Event apiwatch.EventType
	// Child is true if a child has changed, and not only by this operator.
	Child bool
	// Related are changes of related objects; nil if there are none.
	Related *Related
	// Granted names the handlers that lacked a right which has been granted, or that may go on for another reason.
	Granted []string
	// Woken are the versions of children, related objects and indexed objects that woke the key, as far as they are
	// known.
	Woken []breaker.Version
}

// Tombstone is an object that is gone, with the memory of it. Only its key's reconcile uses it.
type Tombstone[M any] struct {
	Object *cached.Object
	// Memory is nil if no reconcile has seen the object.
	Memory *M
	// Confirmation is the state of the confirmation of its deletion.
	tombstone.Confirmation
	// EventHandled is true if the handlers with cause event have run for the deletion of the object.
	EventHandled bool
	// Inherited is true if the object left before this term began. An earlier leader may have finalized it.
	Inherited bool
}

// Owner is the resource of an inbox.
type Owner interface {
	// Keeps reports whether a deleted object gets a reconcile.
	Keeps(*cached.Object) bool
	// Leaves reports whether a deleted object may live on outside of the selectors, with marks of the operator. It must
	// be quick.
	Leaves(watch.Event) bool
	// LogWait logs that a handler has waited for long, or that the wait is over.
	LogWait(Wait)
	// Echoed is called with an object whose event is an echo, because no reconcile follows. It must not call the inbox.
	Echoed(Key, *cached.Object)
}

// New returns an inbox outside of a term.
func New[M any](owner Owner) *Inbox[M] {
	b := &Inbox[M]{owner: owner, lines: lines{owner: owner}, ready: &objectHealth{how: ops.Ready}, left: map[types.UID]*cached.Object{}}
	b.clear()
	return b
}

func (b *Inbox[M]) clear() {
	b.keys = map[Key]*state[M]{}
	b.waiting = map[types.UID][]Key{}
	b.refused = refusals{}
	b.unlogged = map[Key]bool{}
}

// Begin begins a term, whose keys go into q. The memory of an earlier term is void, because another process may have
// worked since. Objects that left before the term have tombstones in it.
func (b *Inbox[M]) Begin(q *queue.Queue[Key]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.keys {
		if s.pending != nil {
			for _, d := range s.gone { // the term ended before it was finalized
				b.leftLocked(watch.Event{Kind: watch.Deleted, UID: d.Object.GetUID(), Unseen: d.Unseen, Object: d.Object})
			}
		}
	}
	b.clear()
	b.queue = q
	for _, o := range b.left {
		key := cache.MetaObjectToName(o)
		s := b.stateLocked(key)
		s.gone = append(s.gone, &Tombstone[M]{Object: o, Confirmation: tombstone.Confirmation{Unseen: true}, Inherited: true})
		q.Add(key, queue.Backlog)
	}
	clear(b.left)
}

// leftLocked handles an event outside of a term: it records which objects leave. The lock is held.
func (b *Inbox[M]) leftLocked(ev watch.Event) {
	switch {
	case ev.Kind != watch.Deleted:
		delete(b.left, ev.UID) // it is back
	case ev.UID != "" && b.owner.Leaves(ev):
		b.left[ev.UID] = ev.Object
	}
}

// End ends the term, if there is one. No key is taken after it.
func (b *Inbox[M]) End() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue != nil {
		b.queue.ShutDown()
		b.queue = nil
	}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// stateLocked returns the key's state, and creates it if there is none. The lock is held.
func (b *Inbox[M]) stateLocked(key Key) *state[M] {
	s, found := b.knownLocked(key)
	if !found {
		s = &state[M]{pending: &pending[M]{}}
		b.keys[key] = s
	}
	return s
}

// knownLocked returns the key's state if there is one.
func (b *Inbox[M]) knownLocked(key Key) (s *state[M], found bool) {
	if s, found = b.keys[key]; found {
		s.wake()
	}
	return s, found
}

// OnEvent handles an event of the resource's own objects.
func (b *Inbox[M]) OnEvent(ev watch.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil {
		b.leftLocked(ev)
		return
	}
	b.wakeLocked(ev.UID)
	s := b.stateLocked(ev.Key)
	class := queue.Fresh
	if ev.Kind == watch.Updated && s.phase != writing && b.echoLocked(ev.Key, s, ev.Object) { // events that were put off are checked in their order
		s.rest()
		return
	}
	switch ev.Kind {
	case watch.Added:
		s.uid, s.fresh, s.came, s.Event = ev.UID, !ev.Initial, true, apiwatch.Added
		if ev.Initial {
			class = queue.Backlog
		}
	case watch.Updated:
		s.uid, s.came, s.Event = ev.UID, true, cmp.Or(s.Event, apiwatch.Modified)
		if s.putOff(ev.Object) {
			return
		}
	case watch.Deleted:
		if b.owner.Keeps(ev.Object) {
			s.gone = append(s.gone, &Tombstone[M]{Object: ev.Object, Confirmation: tombstone.Confirmation{Unseen: ev.Unseen}})
		}
	}
	s.phase, s.late = s.phase.after(onQueue), nil // the key is queued for all of them
	b.queue.Add(ev.Key, class)
}

// OnRelatedEvent handles an event of an object that is related to the key's object, by the relation of this number.
func (b *Inbox[M]) OnRelatedEvent(owner Key, relation int, ev watch.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.knownLocked(owner)
	if b.queue == nil || !known {
		return
	}
	if s.Related == nil {
		s.Related = &Related{}
	}
	s.Related.note(relation, ev)
	b.queue.Add(owner, queue.Fresh)
}

// OnIndexEvent handles an event of an object that changes an index under a key that the owner has read.
func (b *Inbox[M]) OnIndexEvent(owner Key, v breaker.Version) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, known := b.knownLocked(owner); known {
		s.woken(v)
		s.concerns(v.UID)
	}
	if b.queue != nil {
		b.queue.Add(owner, queue.Fresh)
	}
}

// Enqueue queues a key.
func (b *Inbox[M]) Enqueue(key Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue != nil {
		b.queue.Add(key, queue.Fresh)
	}
}

// Retry queues a key, so that a worker runs one of its handlers again that waits. Without a handler it is Look.
func (b *Inbox[M]) Retry(key Key, handler string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil {
		return
	}
	if s, known := b.knownLocked(key); known && handler != "" {
		s.Granted = append(s.Granted, handler)
	}
	b.queue.Add(key, queue.Fresh)
}

// EnqueueAll queues the keys of a namespace; if it is empty, all known keys.
func (b *Inbox[M]) EnqueueAll(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil {
		return
	}
	for key := range b.keys {
		if namespace == "" || key.Namespace == namespace {
			b.queue.Add(key, queue.Backlog)
		}
	}
}

// Expect records a write to an object by a reconcile over another object. An unknown object has the write in its first
// event.
func (b *Inbox[M]) Expect(w Write) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, known := b.knownLocked(w.Key); known {
		s.expected = append(s.expected, w.noted())
	}
}

// SetRejected records whether a handler's request was rejected for lack of a right, or found no server. It returns whether
// that was so before.
func (b *Inbox[M]) SetRejected(key Key, who string, refused bool) (before bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refused.note(key, who, refused)
}

// Grant queues every key with a rejected request, in the order of the first rejections: a missing right was granted, or
// the server is back.
func (b *Inbox[M]) Grant() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil {
		return
	}
	b.refused.take(func(key Key, who []string) {
		s := b.stateLocked(key)
		s.Granted = append(s.Granted, who...)
		b.queue.Add(key, queue.Fresh)
	})
}

// IsDeleting reports whether an object of this UID is gone and not finalized yet. A running reconcile may have it in its
// batch.
func (b *Inbox[M]) IsDeleting(key Key, uid types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.keys[key]
	if !known || s.pending == nil {
		return false
	}
	is := func(t *Tombstone[M]) bool { return t.Object.GetUID() == uid }
	return slices.ContainsFunc(s.gone, is) || s.turn != nil && slices.ContainsFunc(s.turn.Gone, is)
}

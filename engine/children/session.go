// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/cluster/transport"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
)

// Memory holds facts about an owner's children from one reconcile to the next. Its zero value is empty.
type Memory struct {
	// settled are children that the server rewrote.
	settled apply.SettledMemory
	// inputs are the inputs of children that are as they are wanted.
	inputs settledBy
	// claims has the children that two handlers want.
	claims collision.Memory[id]
	// inventory is the owner's inventory as it is known; nil before a reconcile has read it.
	inventory *knownInventory
	// unsure is true if a write of the inventory got no answer. The owner may have another inventory then.
	unsure bool
	// unconfirmed are places that may have a child that no cache shows.
	unconfirmed *ownership.Inventory
	// asked are the children that stay for now, with the handler that may want each, as logged.
	asked map[ownership.Place]string
	// targets are patched objects that the server rewrote.
	targets settledTargets
}

// Input is the input of a session: a reconcile over the owner.
type Input struct {
	Key inbox.Key
	// Object is the owner as the reconcile has read it.
	Object *unstructured.Unstructured
	// Gone is true if the cache does not show the owner. Deleting is true if the owner is gone or is being deleted.
	Gone, Deleting bool
	Now            time.Time
	// Logger returns the log of the reconcile.
	Logger Logger
	// Share is the memory that the reconcile may take; nil for no limit.
	Share  *Share
	Memory *Memory
	// Prune remembers the state of the search for children that no handler wants.
	Prune *prune.Memory
	// Awaits are the writes that the next reconcile waits for. They include earlier writes that no cache shows yet.
	Awaits *inbox.Writes
	// Walk records the versions that the reconcile writes; nil if nothing is written.
	Walk *breaker.Walk
	// Done names the handlers that have finished with the owner's deletion; nil if it is not being deleted.
	Done map[string]bool
}

// Logger returns the log for events of an owner. It may be called by several goroutines.
type Logger interface{ Log() logr.Logger }

// Others describes the handlers of a reconcile as they were at one moment of it.
type Others interface {
	// Undecided returns a handler, other than but, that may want a child of a kind and has not decided yet; empty if all
	// have decided. But may be empty. Only one goroutine calls it at a time.
	Undecided(but string, kind schema.GroupKind) (handler string)
	// States returns the state of each handler that had something to do before.
	States() []collision.HandlerState
}

// Session reads and writes the children of one owner in one reconcile. Handlers may use goroutines, so its methods may
// be called by several at once. A handler's calls end with its span, so nothing uses the memory after the reconcile.
type Session struct {
	// Claims decides about children that two of the owner's handlers want.
	Claims *collision.Claims[id]

	family      *Family
	in          Input
	lister      lister
	judged      judged
	settled     apply.Settled
	settling    sync.Mutex // covers the targets of the memory
	journal     journal
	writer      ownerWriter
	inventory   ownerInventory
	unconfirmed unconfirmed
	undecided   undecided
}

// Begin begins the session of a reconcile. From then on, events of children find the owner.
func (f *Family) Begin(in Input) *Session {
	s := &Session{family: f, in: in}
	s.settled.Memory = &in.Memory.settled
	s.Claims = collision.Begin(&in.Memory.claims, f.settings.Handlers, in.Now, in.Done)
	s.journal.family, s.journal.in = f, &s.in
	s.writer.family, s.writer.in, s.writer.base = f, &s.in, in.Object
	s.unconfirmed.now, s.unconfirmed.memory = in.Now, &in.Memory.unconfirmed
	s.undecided.handlers, s.undecided.memory = f.settings.Handlers, &in.Memory.asked
	r := &s.inventory
	r.family, r.in, r.lost = f, &s.in, in.Memory.unsure
	r.writer, r.lister, r.journal, r.unconfirmed = &s.writer, &s.lister, &s.journal, &s.unconfirmed
	r.read()
	if !in.Gone {
		f.inventories.set(in.Key, r.known.inventory)
	}
	return s
}

// For returns the children for one attempt of a handler, which may write them in the span. Others describes the handlers
// when the attempt begins.
func (s *Session) For(span *transport.Span, a collision.Attempt, others Others) dsl.Children {
	return s.deleting(span, a, others, limits.Handler)
}

// deleting is For with the cause for which children are deleted.
func (s *Session) deleting(span *transport.Span, a collision.Attempt, others Others, cause limits.Cause) *children {
	return &children{Reader{session: s, span: span, attempt: a, others: others, failed: new(atomic.Bool)}, cause}
}

// Reader returns the children for the filters of a handler.
func (s *Session) Reader() *Reader { return &Reader{session: s, failed: new(atomic.Bool)} }

// Base returns the owner as the reconcile has written it so far. Later writes start from it.
func (s *Session) Base() *unstructured.Unstructured { return s.writer.get() }

// Rebase stores the owner as the reconcile has written it.
func (s *Session) Rebase(base *unstructured.Unstructured) { s.writer.set(base) }

// Applied reports whether this reconcile has applied or deleted a child.
func (s *Session) Applied() bool { return !s.lister.empty() }

// Trim removes former children from the inventory of an owner that is about to be written. An inventory of another
// object is removed. Trim returns the annotations to write with the owner; an empty one removes the annotation, and nil
// means none.
func (s *Session) Trim(owner *unstructured.Unstructured) map[string]patch.Note {
	return s.inventory.trim(owner)
}

// Close keeps the inventory at the end of a reconcile. When every handler is done, it logs objects that look like
// children and are not in the inventory. It does so once, and again when the owner is being deleted.
func (s *Session) Close(done bool) {
	s.inventory.close(done)
	if done && !s.in.Gone && (!s.in.Prune.Logged || s.in.Deleting) {
		s.in.Prune.Logged = true
		s.reportUnlisted()
	}
}

// IsIdle reports whether the next reconcile has nothing to do about children. It assumes that the owner stays as written,
// and that no other child changes.
func (s *Session) IsIdle(written *unstructured.Unstructured) bool {
	m, known := s.in.Memory, s.inventory.owner().Inventory
	if known != nil || m.unsure || m.unconfirmed != nil || len(m.asked) > 0 || !m.claims.Empty() || written.GetAnnotations()[s.family.names.keys.Inventory] != "" {
		return false
	}
	gone := func(w Write) bool { return w.Gone || w.Version == "" && w.Cache != nil }
	return s.in.Prune.Done(s.family.sweeper.Withdrawing(written)) && !slices.ContainsFunc(s.journal.all(), gone)
}

// owner returns the handled object as the owner of children.
func (s *Session) owner() ownership.Owner { return s.inventory.owner() }

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"
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
)

// Memory is what is known of an owner's children from one reconcile to the next. Its zero value knows of none.
type Memory struct {
	// settled are children that the server rewrote.
	settled apply.Settled
	// inputs are what children were made from that are as they are wanted.
	inputs settledBy
	// claims are about the children that two handlers want.
	claims collision.Memory[id]
	// record is what is known of the owner's record; nil before a reconcile has read it.
	record *knownRecord
	// unsure: a write of the record got no answer, so the owner may have another record than is known.
	unsure bool
	// unconfirmed are places where a child may be that no cache shows.
	unconfirmed *ownership.Record
	// asked are the children that stay for now, with the handler that may want each, as the log says.
	asked map[ownership.Place]string
	// targets are patched objects that the server rewrote.
	targets settledTargets
}

// Pass is what a session has to know of the reconcile that it is for.
type Pass struct {
	Key inbox.Key
	// Object is the owner as the reconcile has read it.
	Object *unstructured.Unstructured
	// Gone: the cache does not show the owner any more. Deleting: it is gone, or is being deleted.
	Gone, Deleting bool
	Now            time.Time
	// Logger has the log of the reconcile.
	Logger Logger
	// Share is the memory that the reconcile may take; nil for any.
	Share  *Share
	Memory *Memory
	// Sweep is what is known of children that no handler has any more.
	Sweep *prune.SweepMemory
	// Awaits are the writes that the next reconcile waits for, those of earlier ones among them that no cache shows yet.
	Awaits *inbox.Writes
	// Walk notes the versions that the reconcile writes; nil where nothing is written.
	Walk *breaker.Walk
	// Done names the handlers that are through with the owner's deletion; nil while it lives.
	Done map[string]bool
}

// Logger makes the log for what happens to the owner. It may be called by several goroutines.
type Logger interface{ Log() logr.Logger }

// Others tells what the handlers of a reconcile may want, as they were at one moment of it.
type Others interface {
	// Undecided names a handler, other than but, that may want a child of a kind and has not said so yet; it is empty when
	// all have. But may be empty. One goroutine asks at a time.
	Undecided(but string, kind schema.GroupKind) (handler string)
	// Turns returns how the handlers fare that had something to do before.
	Turns() []collision.Turn
}

// Session is what one reconcile over one owner does with its children. Handlers may use goroutines, so its methods may
// be called by several at once. All that a handler begins in it ends with its span, so the memory is not used
// any more once the reconcile is over.
type Session struct {
	// Claims are what the owner's handlers say to children that two of them want.
	Claims *collision.Claims[id]

	family      *Family
	pass        Pass
	lister      lister
	judged      judged
	journal     journal
	writer      ownerWriter
	record      ownerRecord
	unconfirmed unconfirmed
	undecided   undecided
}

// Begin begins the session of a reconcile, from which on events of children find the owner.
func (f *Family) Begin(p Pass) *Session {
	s := &Session{family: f, pass: p}
	s.Claims = collision.Begin(&p.Memory.claims, f.settings.Handlers, p.Now, p.Done)
	s.journal.family, s.journal.pass = f, &s.pass
	s.writer.family, s.writer.pass, s.writer.base = f, &s.pass, p.Object
	s.unconfirmed.now, s.unconfirmed.memory = p.Now, &p.Memory.unconfirmed
	s.undecided.handlers, s.undecided.memory = f.settings.Handlers, &p.Memory.asked
	r := &s.record
	r.family, r.pass, r.lost = f, &s.pass, p.Memory.unsure
	r.writer, r.lister, r.journal, r.unconfirmed = &s.writer, &s.lister, &s.journal, &s.unconfirmed
	r.read()
	if !p.Gone {
		f.records.set(p.Key, r.known.record)
	}
	return s
}

// For returns the children for one attempt of a handler, which may write them in the span. Others are the handlers when it begins.
func (s *Session) For(span *transport.Span, a collision.Attempt, others Others) dsl.Children {
	return &children{Reader{session: s, span: span, attempt: a, others: others, failed: new(atomic.Bool)}}
}

// Reader returns the children for the filters of a handler.
func (s *Session) Reader() *Reader { return &Reader{session: s, failed: new(atomic.Bool)} }

// Base is the owner as the reconcile has written it so far: what is written later is worked out from that.
func (s *Session) Base() *unstructured.Unstructured { return s.writer.get() }

// Rebase notes the owner as the reconcile has written it.
func (s *Session) Rebase(base *unstructured.Unstructured) { s.writer.set(base) }

// Applied reports whether handlers of this reconcile have come to any child.
func (s *Session) Applied() bool { return !s.lister.empty() }

// Trim removes former children from the record of the owner, which is about to be written. A record of another object
// goes.
// Trim returns annotations that are to be written when the owner is, an empty one to be removed; nil for none.
func (s *Session) Trim(owner *unstructured.Unstructured) map[string]patch.Note {
	return s.record.trim(owner)
}

// Close remembers the record when the reconcile has written. When every handler is done, what passes for a child and is not in the record
// is logged, once in the life of a process.
func (s *Session) Close(done bool) {
	s.record.close(done)
	if done && !s.pass.Gone && (!s.pass.Sweep.Logged || s.pass.Deleting) {
		s.pass.Sweep.Logged = true
		s.reportUnlisted()
	}
}

// Rests reports whether the next reconcile has nothing to do about children, if it finds the owner as it was written, and no child has changed
// besides.
func (s *Session) Rests(written *unstructured.Unstructured) bool {
	m, known := s.pass.Memory, s.record.owner().Record
	if known != nil || m.unsure || m.unconfirmed != nil || len(m.asked) > 0 || !m.claims.Empty() || written.GetAnnotations()[s.family.names.keys.Record] != "" {
		return false
	}
	gone := func(w Write) bool { return w.Gone || w.Version == "" && w.Cache != nil }
	return s.pass.Sweep.Done(s.family.sweeper.Withdrawing(written)) && !slices.ContainsFunc(s.journal.all(), gone)
}

// owner is the handled object as the owner of children.
func (s *Session) owner() ownership.Owner { return s.record.owner() }

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/breaker"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/collision"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/prune"
	"github.com/handwerk-dev/handwerk/engine/transport"
)

// Memory is what is known of an owner's children from one pass to the next. Its zero value knows of none.
type Memory struct {
	// settled are children that the server rewrote.
	settled apply.Settled
	// claims are about the children that two handlers want.
	claims collision.Memory[id]
	// ties is about the owner's record, nil where there is none.
	ties *ties
	// unsure: a write of the record got no answer, so the owner may have another one than ties has.
	unsure bool
	// doubts are places where a child may be that no cache shows: its creation got no answer, or an earlier process made it. Those
	// of the record stay in it until the child is seen, or looked for.
	doubts *ownership.Record
	// asked are the children that stay for now, with the handler that may want each, as the log says.
	asked map[ownership.Place]string
}

// Pass is what a session has to know of the pass that it is for.
type Pass struct {
	Key inbox.Key
	// Object is the owner as the pass has read it.
	Object *unstructured.Unstructured
	// Gone: the cache does not show the owner any more. Deleting: it is gone, or is being deleted.
	Gone, Deleting bool
	Now            time.Time
	// Asker answers for the pass.
	Asker Asker
	// Share is the memory that the pass may take; nil for any.
	Share  *Share
	Memory *Memory
	// Sweep is what is known of children that no handler has any more.
	Sweep *prune.SweepMemory
	// Awaits are the writes that the next pass waits for, those of earlier ones among them that no cache shows yet.
	Awaits *inbox.Writes
	// Walk notes the versions that the pass writes; nil where nothing is written.
	Walk *breaker.Walk
	// Done names the handlers that are through with the owner's deletion; nil while it lives.
	Done map[string]bool
}

// Asker answers for the pass of a session. It may be called by several goroutines.
type Asker interface {
	// Log returns the log for what happens to the owner.
	Log() logr.Logger
	// Undecided names a handler, other than but, that may want a child of a kind and has not said so yet; it is empty when
	// all have. But may be empty.
	Undecided(but string, kind schema.GroupKind) (handler string)
}

// Session is one pass over one owner, as far as it is about children. Handlers may use goroutines, so its methods may
// be called by several at once. All that a handler begins in it ends with its span, so what the memory has is touched by
// nobody once the pass is over.
type Session struct {
	// Claims are what the owner's handlers say to children that two of them want.
	Claims *collision.Claims[id]

	family *Family
	pass   Pass

	// turn is held while the record is written.
	turn sync.Mutex

	mu sync.Mutex // guards what follows, and what the memory has of it
	// writes are those of the pass, to children and others. Awaited: some cache has to show one of them.
	writes  []Write
	awaited bool
	// applied are children as this pass leaves them.
	applied map[id]*unstructured.Unstructured
	// base is the owner as the pass has written it so far.
	base *unstructured.Unstructured
	ties
	// wanted are the places that this pass enters into the record; true while nothing was known to be there when it was entered.
	wanted map[ownership.Place]bool
	// lost: a write of the record by an earlier pass got no answer, and the owner has not been read since.
	lost bool
	// fault is why the server did not take the record.
	fault error
	// holds: something has to be done about children of this pass before the owner goes.
	holds bool
	// stays are children that were to be taken away in this pass and stay, as somebody may want them.
	stays []stay
}

// Begin begins the session of a pass, from which on events of children find the owner.
func (f *Family) Begin(p Pass) *Session {
	s := &Session{family: f, pass: p, base: p.Object, lost: p.Memory.unsure}
	s.Claims = collision.Begin(&p.Memory.claims, f.settings.Handlers, p.Now, p.Done)
	s.readRecord()
	if !p.Gone {
		f.know(p.Key, s.record)
	}
	return s
}

// For returns the children for one attempt of a handler, which may write them in the span.
func (s *Session) For(span *transport.Span, a collision.Attempt) dsl.Children {
	return &children{Reader{session: s, span: span, attempt: a}}
}

// Reader returns the children for the filters of a handler.
func (s *Session) Reader() *Reader { return &Reader{session: s} }

// Base is the owner as the pass has written it so far: what is written later is worked out from that.
func (s *Session) Base() *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.base
}

// Rebase notes the owner as the pass has written it.
func (s *Session) Rebase(base *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = base
}

// Applied reports whether handlers of this pass have come to any child.
func (s *Session) Applied() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.applied) > 0
}

// owner is the handled object as the owner of children.
func (s *Session) owner() ownership.Owner {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ownership.Owner{
		Object: s.pass.Object, Namespaced: s.family.settings.Own.Resource().Namespaced, Keys: s.family.keys,
		Record: s.record, Closed: s.closed,
	}
}

// childrenIn returns the owner's children among the objects of a feed, each as this pass has applied it or as the
// cache has it, sorted.
func (s *Session) childrenIn(f *feed.Feed, owner ownership.Owner) (out []*unstructured.Unstructured) {
	gvr, keys := f.Resource().GVR, map[cache.ObjectName]bool{}
	for _, mark := range owner.Marks() {
		for _, o := range f.OwnedBy(mark) {
			keys[cache.MetaObjectToName(o)] = true
		}
	}
	s.mu.Lock()
	for which := range s.applied {
		if which.gvr == gvr {
			keys[which.key] = true
		}
	}
	s.mu.Unlock()
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b cache.ObjectName) int { return strings.Compare(a.String(), b.String()) }) {
		if o := s.known(f, id{gvr, key}); o != nil && owner.Has(o) {
			out = append(out, o)
		}
	}
	return out
}

// known returns a child as this pass has applied it, or as the cache of its feed has it if it has one; nil where
// neither does.
func (s *Session) known(f *feed.Feed, which id) *unstructured.Unstructured {
	s.mu.Lock()
	applied := s.applied[which]
	s.mu.Unlock()
	if applied != nil {
		return applied.DeepCopy()
	}
	if f == nil {
		return nil
	}
	if o, found := f.Get(which.key); found {
		return o.Tree()
	}
	return nil
}

// keep keeps a child as this pass leaves it.
func (s *Session) keep(which id, o *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.applied == nil {
		s.applied = map[id]*unstructured.Unstructured{}
	}
	s.applied[which] = o.DeepCopy()
}

// id names a child.
type id struct {
	gvr schema.GroupVersionResource
	key cache.ObjectName
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
)

// Reconciles together may take an eighth of the memory limit. Small shares do not wait: the number of workers bounds
// them.
const (
	part        = 8
	smallPart   = 64
	unspecified = 512 << 20
)

// Budget bounds the memory that reconciles take together. Its methods may be called at any time from any goroutine.
type Budget struct {
	most, small int

	mu   sync.Mutex
	used int
	of   map[string]int // by namespace
	// waits are in the order of their arrival. Ready are the shares of woken waiters.
	waits []waiter
	ready map[Who]*Share
	// senior is the share that may grow beyond the budget, so that one reconcile always comes to its end. Returned is
	// closed when a share returns bytes.
	senior   *Share
	returned chan struct{}
}

// Who is an object whose reconcile takes a share.
type Who struct{ Resource, Namespace, Name string }

// Waker queues the key of an object; see [inbox.Inbox].
type Waker interface{ Enqueue(key inbox.Key) }

type waiter struct {
	who   Who
	bytes int
	inbox Waker
}

// wake queues the key of the waiter.
func (w waiter) wake() { w.inbox.Enqueue(inbox.Key{Namespace: w.who.Namespace, Name: w.who.Name}) }

// Share is the part of a budget that one reconcile has.
type Share struct {
	budget *Budget
	who    Who
	bytes  int
	// first is the size at first, and peak the largest size.
	first, peak int
	// flying counts the calls of Grow without a call of shrink.
	flying int
}

// NewBudget returns a budget for a process with a memory limit, in bytes, as GOMEMLIMIT sets it. Without a limit the
// budget is 512 MiB.
func NewBudget(limit int64) *Budget {
	if limit <= 0 || limit == math.MaxInt64 {
		limit = part * unspecified
	}
	most := int(limit / part)
	return &Budget{most: most, small: most / smallPart, of: map[string]int{}, ready: map[Who]*Share{}, returned: make(chan struct{})}
}

// Take returns a share of so many bytes. If too little is left, it returns nil, and wakes the object once when the share
// is ready. A request for more than the whole budget gets the whole budget.
func (b *Budget) Take(who Who, bytes int, inbox Waker) *Share {
	b.mu.Lock()
	if s := b.ready[who]; s != nil {
		delete(b.ready, who)
		b.mu.Unlock()
		return s
	}
	if bytes <= b.small {
		defer b.mu.Unlock()
		return b.giveLocked(who, bytes)
	}
	b.queueLocked(who, bytes, inbox)
	woken := b.admitLocked(who)
	s := b.ready[who]
	delete(b.ready, who)
	b.mu.Unlock()
	for _, w := range woken {
		w.wake()
	}
	return s
}

func (b *Budget) queueLocked(who Who, bytes int, inbox Waker) {
	if !slices.ContainsFunc(b.waits, func(w waiter) bool { return w.who == who }) {
		b.waits = append(b.waits, waiter{who, min(bytes, b.most), inbox})
	}
}

func (b *Budget) giveLocked(who Who, bytes int) *Share {
	b.used += bytes
	b.of[who.Namespace] += bytes
	return &Share{budget: b, who: who, bytes: bytes, first: bytes, peak: bytes}
}

// admitLocked gives shares to waiters while there is room, and begins with the namespace that uses least. It returns the
// waiters that got one, except for the caller.
func (b *Budget) admitLocked(asks Who) (woken []waiter) {
	for len(b.waits) > 0 {
		next := 0
		for i, w := range b.waits {
			if b.of[w.who.Namespace] < b.of[b.waits[next].who.Namespace] {
				next = i
			}
		}
		w := b.waits[next]
		if b.used > 0 && b.used+w.bytes > b.most {
			return woken
		}
		b.waits = slices.Delete(b.waits, next, next+1)
		b.ready[w.who] = b.giveLocked(w.who, w.bytes)
		if w.who != asks {
			woken = append(woken, w)
		}
	}
	return woken
}

// Lacks reports whether Take would return no share. It takes none.
func (b *Budget) Lacks(who Who, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ready[who] != nil || bytes <= b.small {
		return false
	}
	now := &Budget{most: b.most, used: b.used, of: maps.Clone(b.of), waits: slices.Clone(b.waits), ready: map[Who]*Share{}}
	now.queueLocked(who, bytes, nil)
	now.admitLocked(who)
	return now.ready[who] == nil
}

// Drop removes all waiters of a resource at the end of a term: no worker takes its keys then.
func (b *Budget) Drop(resource string) {
	b.forget(func(who Who) bool { return who.Resource == resource })
}

// Leave ends the wait of an object whose reconcile does not begin, for another reason. A share that was kept for it goes
// to others.
func (b *Budget) Leave(who Who) {
	b.mu.Lock()
	none := len(b.waits) == 0 && len(b.ready) == 0
	b.mu.Unlock()
	if none {
		return // the usual case
	}
	b.forget(func(w Who) bool { return w == who })
}

// forget removes waiters, and returns the shares that were kept for woken ones.
func (b *Budget) forget(which func(Who) bool) {
	b.mu.Lock()
	b.waits = slices.DeleteFunc(b.waits, func(w waiter) bool { return which(w.who) })
	var left []*Share
	for who, s := range b.ready {
		if which(who) {
			left = append(left, s)
			delete(b.ready, who)
		}
	}
	woken := b.admitLocked(Who{}) // waiters behind them may fit now
	b.mu.Unlock()
	for _, w := range woken {
		w.wake()
	}
	for _, s := range left {
		s.Return()
	}
}

// Grow makes the share larger, until shrink. If too little is left, it blocks its worker until others have returned
// theirs or the context ends. One blocked share may exceed the budget, once it has no other growth to return itself. A
// nil share has no bound.
func (s *Share) Grow(ctx context.Context, bytes int) error {
	if s == nil {
		return nil
	}
	b := s.budget
	for {
		b.mu.Lock()
		fits := b.used+bytes <= b.most || s.bytes+bytes <= b.small
		if !fits && b.senior == nil {
			b.senior = s
		}
		if fits || b.senior == s && s.flying == 0 {
			s.flying++
			s.bytes += bytes
			s.peak = max(s.peak, s.bytes)
			b.used += bytes
			b.of[s.who.Namespace] += bytes
			b.mu.Unlock()
			return nil
		}
		returned := b.returned
		b.mu.Unlock()
		select {
		case <-returned:
		case <-ctx.Done():
			return fmt.Errorf("waiting for memory that other reconciles hold: %w", context.Cause(ctx))
		}
	}
}

// shrink returns some or all of the bytes of a Grow. It is called once for each Grow.
func (s *Share) shrink(bytes int) {
	if s != nil {
		s.give(bytes, false)
	}
}

// Return returns all of the share. It may be called more than once.
func (s *Share) Return() {
	if s != nil {
		s.give(math.MaxInt, true)
	}
}

func (s *Share) give(bytes int, all bool) {
	b := s.budget
	b.mu.Lock()
	if !all {
		s.flying--
	}
	bytes = min(bytes, s.bytes)
	s.bytes -= bytes
	b.used -= bytes
	if b.of[s.who.Namespace] -= bytes; b.of[s.who.Namespace] <= 0 {
		delete(b.of, s.who.Namespace)
	}
	if all && b.senior == s {
		b.senior = nil
	}
	close(b.returned)
	b.returned = make(chan struct{})
	woken := b.admitLocked(Who{})
	b.mu.Unlock()
	for _, w := range woken {
		w.wake()
	}
}

// Grown returns by how much the share has grown at most; zero if it stayed small. The next reconcile over the object
// expects as much.
func (s *Share) Grown() int {
	if s == nil {
		return 0
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if s.peak <= s.budget.small {
		return 0
	}
	return s.peak - s.first
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
)

// read is something of an index that a handler, or its filter, has read.
type read struct {
	index *one
	// key is a key of the index, set or all.
	key Key
}

// What is read of an index beside single keys; no key is like these.
const (
	// set is which keys there are, all is everything.
	set Key = ""
	all Key = "*"
)

// digest is that of what is there now.
func (r read) digest() uint64 {
	switch r.key {
	case set:
		return r.index.values.digestOfKeys()
	case all:
		return r.index.values.digestOfAll()
	}
	return r.index.values.Digest(r.key)
}

// sight is what was read, with the digest of what was there, zero where the index could not be read.
type sight struct {
	read
	digest uint64
}

// who reads: a handler, or its filter where that is asked for a cause.
type who struct {
	handler string
	filter  dsl.Cause
}

// slot is what somebody has read when it was asked last.
type slot struct {
	who
	sights []sight
}

// Readers know what the handlers of one resource's objects, here called owners, have read of the indexes. Its methods
// may be called by any number of goroutines, but an owner is viewed by one reconcile at a time.
type Readers struct {
	set   *Set
	inbox Inbox
	// nothing is what reconciles see where there are no indexes.
	nothing *View

	mu sync.Mutex
	of map[cache.ObjectName][]slot
}

// Inbox wakes the owners of a resource, as [inbox.Inbox] does.
type Inbox interface {
	// IndexSeen wakes an owner because of this version of an object, where it is known. It must be quick and must not call
	// the set.
	IndexSeen(owner cache.ObjectName, woken breaker.Version)
}

// Readers returns the readers of a resource whose owners are woken through this inbox.
func (s *Set) Readers(inbox Inbox) *Readers {
	r := &Readers{set: s, inbox: inbox, of: map[cache.ObjectName][]slot{}}
	r.nothing = &View{readers: r}
	return r
}

// Forget drops what an owner has read that is gone.
func (r *Readers) Forget(owner cache.ObjectName) {
	r.put(owner, nil, nil)
	for _, x := range r.set.all {
		x.readers.Found(reader{r, owner})
	}
}

// Clear drops what all owners have read.
func (r *Readers) Clear() {
	r.mu.Lock()
	owners := slices.Collect(maps.Keys(r.of))
	r.mu.Unlock()
	for _, owner := range owners {
		r.Forget(owner)
	}
}

// slots are an owner's. They are not changed.
func (r *Readers) slots(owner cache.ObjectName) []slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[owner]
}

// put makes slots an owner's, and drops subscriptions to what is read no more: of those that the owner had, and of the
// others that are given.
func (r *Readers) put(owner cache.ObjectName, slots []slot, others []read) {
	r.mu.Lock()
	before := r.of[owner]
	if len(slots) > 0 {
		r.of[owner] = slots
	} else {
		delete(r.of, owner)
	}
	r.mu.Unlock()
	wanted := readsOf(slots)
	for _, list := range [][]read{readsOf(before), others} {
		for _, one := range list {
			if !slices.Contains(wanted, one) {
				one.index.readers.Drop(reader{r, owner}, one.key)
			}
		}
	}
}

func readsOf(slots []slot) (out []read) {
	for _, s := range slots {
		for _, at := range s.sights {
			out = append(out, at.read)
		}
	}
	return out
}

// reader is an owner of a resource.
type reader struct {
	of    *Readers
	owner cache.ObjectName
}

// look wakes each owner that a change concerns. This version of an object made the change.
func (x *one) look(c Change, woken breaker.Version) {
	if len(c.Keys) == 0 {
		return
	}
	keys := append(c.Keys, all)
	if c.Set {
		keys = append(keys, set)
	}
	x.readers.Each(func(who reader) { who.of.inbox.IndexSeen(who.owner, woken) }, keys...) // one that is woken twice is queued once
}

// Grant implements [feed.Handler]: it wakes the owners that could not read the index.
func (x *one) Grant() {
	x.readers.EachMissed(func(who reader) { who.of.inbox.IndexSeen(who.owner, breaker.Version{}) })
}

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

// read is a part of an index that a handler, or its filter, has read.
type read struct {
	index *one
	// key is a key of the index, set or all.
	key Key
}

// Parts of an index beside single keys. No key is equal to these.
const (
	// set stands for the set of keys, and all for everything.
	set Key = ""
	all Key = "*"
)

// digest returns the digest of the part as it is now.
func (r read) digest() uint64 {
	switch r.key {
	case set:
		return r.index.values.digestOfKeys()
	case all:
		return r.index.values.digestOfAll()
	}
	return r.index.values.Digest(r.key)
}

// sight is a part that was read, with its digest at that time; zero if the index could not be read.
type sight struct {
	read
	digest uint64
}

// who identifies a reader: a handler, or its filter for a cause.
type who struct {
	handler string
	filter  dsl.Cause
}

// slot has the parts that a reader has read in its last run.
type slot struct {
	who
	sights []sight
}

// Readers record what the handlers of one resource's objects, here called owners, have read of the indexes. Its methods
// may be called by any number of goroutines, but only one reconcile at a time has a view for an owner.
type Readers struct {
	set   *Set
	inbox Inbox
	// nothing is the view of reconciles if there are no indexes.
	nothing *View

	mu sync.Mutex
	of map[cache.ObjectName][]slot
}

// Inbox wakes the owners of a resource, as [inbox.Inbox] does.
type Inbox interface {
	// OnIndexEvent wakes an owner because of this version of an object, if it is known. It must be quick, and must not call
	// the set.
	OnIndexEvent(owner cache.ObjectName, woken breaker.Version)
}

// Readers returns the readers of a resource whose owners are woken through this inbox.
func (s *Set) Readers(inbox Inbox) *Readers {
	r := &Readers{set: s, inbox: inbox, of: map[cache.ObjectName][]slot{}}
	r.nothing = &View{readers: r}
	return r
}

// Forget removes the reads of an owner that is gone.
func (r *Readers) Forget(owner cache.ObjectName) {
	r.put(owner, nil, nil)
	for _, x := range r.set.all {
		x.readers.Recovered(reader{r, owner})
	}
}

// Clear removes the reads of all owners.
func (r *Readers) Clear() {
	r.mu.Lock()
	owners := slices.Collect(maps.Keys(r.of))
	r.mu.Unlock()
	for _, owner := range owners {
		r.Forget(owner)
	}
}

// slots returns the slots of an owner. They are not changed.
func (r *Readers) slots(owner cache.ObjectName) []slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[owner]
}

// put replaces the slots of an owner, and drops subscriptions to parts that are no longer read. It looks at the parts
// that the owner had, and at the others that are given.
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
				one.index.readers.Remove(reader{r, owner}, one.key)
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

// look wakes each owner that a change concerns. Woken is the version of the object that made the change.
func (x *one) look(c Change, woken breaker.Version) {
	if len(c.Keys) == 0 {
		return
	}
	keys := append(c.Keys, all)
	if c.Set {
		keys = append(keys, set)
	}
	x.readers.Each(func(who reader) { who.of.inbox.OnIndexEvent(who.owner, woken) }, keys...) // an owner that is woken twice is queued once
}

// Grant implements [source.Handler]: it wakes the owners that could not read the index.
func (x *one) Grant() {
	x.readers.EachFailed(func(who reader) { who.of.inbox.OnIndexEvent(who.owner, breaker.Version{}) })
}

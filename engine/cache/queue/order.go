// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"sync"
	"sync/atomic"
	"time"
)

// penalties returns for each class the time that is subtracted from a key's age in comparisons.
func penalties() [classes]time.Duration {
	return [classes]time.Duration{Backlog: 30 * time.Second, Due: time.Second, Resync: 30 * time.Second}
}

const (
	classes = int(Resync) + 1
	// share: one in so many keys is the one that has waited longest in its tenant, whatever its class. So keys of a
	// lower class do not starve. The many keys of a first list do not delay fresh ones once they are old.
	share = 4
	// aFew is the number of keys up to which memory is kept. If there were more, it is freed when no key waits.
	aFew = 64
)

// order is the workqueue's store of ready keys: for each tenant a heap for each class.
//
// The workqueue calls Touch, Push, Pop and Len under its own lock, which guards places, most, taken and count. The
// wanted ranks come from outside of that lock, as does the end of a key's work.
type order[K comparable] struct {
	closed atomic.Bool

	tenants *tenants[K]
	places  map[K]*place[K]
	most    int // most keys at once since it was last empty
	taken   uint
	count   uint64
	tally   *tally[K]

	mu     sync.Mutex
	wanted map[K]rank // for keys on their way to Push or Touch
	asked  map[K]bool // keys that were popped, and queued for questions alone
}

// rank is a key's priority: its class, and its age as the time of its arrival plus the penalty.
type rank struct {
	class Class
	since time.Time
	// came is the time of its arrival; metered says whether it was counted.
	came    time.Time
	metered bool
	// asked is true if the key is queued only because a person asks about its object.
	asked bool
}

// place is a key in a line.
type place[K comparable] struct {
	rank
	tenant *tenant[K]
	key    K
	number uint64 // number of arrival, to order equal times
	index  int
}

func newOrder[K comparable](m *tally[K], of func(K) string) *order[K] {
	return &order[K]{tally: m, tenants: newTenants(of), places: map[K]*place[K]{}, wanted: map[K]rank{}, asked: map[K]bool{}}
}

// want records the class of a key that is about to be added.
func (o *order[K]) want(key K, class Class, now time.Time) {
	r := rank{class: class, since: now.Add(penalties()[class]), came: now, asked: class == Asked}
	if o.closed.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if known, found := o.wanted[key]; found {
		r = r.best(known)
	} else if o.tally.holds(key) {
		// It is pushed when its worker is done, and counts as waiting from now on.
		o.tally.added()
		r.metered = true
	}
	o.wanted[key] = r
}

// take returns the noted rank of a key. There is none if two additions overlapped and the first one took it for
// both.
func (o *order[K]) take(key K) (rank, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r, found := o.wanted[key]
	delete(o.wanted, key)
	return r, found
}

// Push queues a key.
func (o *order[K]) Push(key K) {
	r, found := o.take(key)
	if !found {
		now := time.Now()
		r = rank{class: Fresh, since: now, came: now}
	}
	if !r.metered {
		o.tally.added()
	}
	o.count++
	p := &place[K]{rank: r, key: key, number: o.count}
	o.places[key] = p
	o.most = max(o.most, len(o.places))
	o.tenants.push(p)
}

// Touch moves a queued key up if it was added with a better class.
func (o *order[K]) Touch(key K) {
	r, found := o.take(key)
	if !found {
		return
	}
	p := o.places[key]
	p.asked = p.asked && r.asked
	better := p.best(r)
	if better.class == p.class && better.since.Equal(p.since) {
		return // it was added before
	}
	o.tenants.lift(p, better)
}

// Len returns the number of keys. After shutdown it is zero, so that the workqueue hands out none.
func (o *order[K]) Len() int {
	if o.closed.Load() {
		return 0
	}
	return len(o.places)
}

// Pop removes the next key.
func (o *order[K]) Pop() K {
	o.taken++
	p := o.tenants.pop(o.taken%share == 0)
	delete(o.places, p.key)
	o.tally.taken(p.key, p.came)
	if p.asked {
		o.mu.Lock()
		o.asked[p.key] = true
		o.mu.Unlock()
	}
	if len(o.places) == 0 && o.most > aFew {
		o.places, o.most = map[K]*place[K]{}, 0 // a map does not shrink while it is in use
	}
	return p.key
}

// best returns the better class and the greater age of two ranks of one key.
func (r rank) best(other rank) rank {
	r.class, r.metered, r.asked = min(r.class, other.class), r.metered || other.metered, r.asked && other.asked
	if other.since.Before(r.since) {
		r.since = other.since
	}
	if other.came.Before(r.came) {
		r.came = other.came
	}
	return r
}

// line is a heap of the keys of one class, the oldest first.
type line[K comparable] []*place[K]

func (l line[K]) Len() int { return len(l) }

func (l line[K]) Less(i, j int) bool { return l[i].before(l[j]) }

// before reports whether the place has the older key.
func (p *place[K]) before(other *place[K]) bool {
	if p.since.Equal(other.since) {
		return p.number < other.number
	}
	return p.since.Before(other.since)
}

func (l line[K]) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}

func (l *line[K]) Push(x any) {
	p := x.(*place[K])
	p.index = len(*l)
	*l = append(*l, p)
}

func (l *line[K]) Pop() any {
	old := *l
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return last
}

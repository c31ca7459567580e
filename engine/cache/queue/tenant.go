// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"container/heap"
	"sync"
	"time"
)

// leastCharge is the least cost of a key for its tenant, so that tenants take turns before any reconcile has ended.
const leastCharge = 100 * time.Microsecond

// tenants share the time of the workers fairly: within a class, the next key is one of the tenant that has used the
// least time. So a tenant with slow keys, or with many, delays its own keys, and others hardly at all. A tenant
// that begins to wait starts at the level of the tenants being served, or above if it has used more: while other
// keys wait, no tenant is forgotten that has used more than that level.
type tenants[K comparable] struct {
	of func(K) string

	mu   sync.Mutex
	all  map[string]*tenant[K]
	work map[K]job[K]
	// turns are the tenants with keys of each class, and finally those with any; the one that has used the least
	// time is first.
	turns [classes + 1]turns[K]
	// served is the used time of the tenant that was served last, and idle is the number of tenants without queued
	// or processed keys.
	served time.Duration
	idle   int
	// most is the number of tenants from which idle ones are forgotten, if they have used no more time than served.
	most int
}

// tenant shares the workers with others; it is a namespace.
type tenant[K comparable] struct {
	name  string
	lines [classes]line[K]
	// had is the time that workers have spent on its keys. atWork is the estimated cost of the keys that workers
	// have; each is estimated as charge, the cost of the last one.
	had, atWork, charge time.Duration
	queued              int
	working             int
	index               [classes + 1]int // in turns
}

// job is a key that a worker has.
type job[K comparable] struct {
	tenant  *tenant[K]
	since   time.Time
	charged time.Duration
}

func newTenants[K comparable](of func(K) string) *tenants[K] {
	t := &tenants[K]{of: of, all: map[string]*tenant[K]{}, work: map[K]job[K]{}}
	for n := range t.turns {
		t.turns[n].of = n
	}
	return t
}

// push queues a key.
func (t *tenants[K]) push(p *place[K]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := t.of(p.key)
	of, known := t.all[name]
	if !known {
		of = &tenant[K]{name: name, charge: leastCharge}
		for n := range of.index {
			of.index[n] = -1
		}
		t.all[name] = of
	} else if of.isIdle() {
		t.idle--
	}
	if p.tenant = of; of.queued == 0 { // time in which it did not wait does not count
		of.had = max(of.had, t.served)
	}
	of.queued++
	heap.Push(&of.lines[p.class], p)
	t.place(of)
}

// lift moves a queued key.
func (t *tenants[K]) lift(p *place[K], to rank) {
	t.mu.Lock()
	defer t.mu.Unlock()
	heap.Remove(&p.tenant.lines[p.class], p.index)
	p.rank = to
	heap.Push(&p.tenant.lines[p.class], p)
	t.place(p.tenant)
}

// pop removes the next key: the most urgent one, or the one that has waited longest.
func (t *tenants[K]) pop(longest bool) *place[K] {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, from := t.next(longest)
	p := heap.Pop(from).(*place[K])
	t.served = max(t.served, of.had)
	t.work[p.key] = job[K]{of, time.Now(), of.charge}
	of.atWork += of.charge
	of.queued--
	of.working++
	t.place(of)
	t.tidy()
	return p
}

// next returns the next tenant, and the line of its key.
func (t *tenants[K]) next(longest bool) (*tenant[K], *line[K]) {
	for class := range classes {
		if waiting := t.turns[class].all; len(waiting) > 0 && !longest {
			return waiting[0], &waiting[0].lines[class]
		}
	}
	of := t.turns[classes].all[0]
	return of, of.oldest()
}

// done ends the work on a key.
func (t *tenants[K]) done(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	j, found := t.work[key]
	if !found {
		return
	}
	delete(t.work, key)
	of, took := j.tenant, time.Since(j.since)
	of.had += took
	of.atWork -= j.charged
	of.charge = max(took, leastCharge)
	if of.working--; of.isIdle() {
		t.idle++
	}
	t.place(of)
	t.tidy()
}

// place moves a tenant to its position among the others.
func (t *tenants[K]) place(of *tenant[K]) {
	for n := range t.turns {
		l, waits := &t.turns[n], of.queued > 0
		if n < classes {
			waits = len(of.lines[n]) > 0
		}
		switch at := of.index[n]; {
		case waits && at < 0:
			heap.Push(l, of)
		case waits:
			heap.Fix(l, at)
		case at >= 0:
			heap.Remove(l, at)
		}
	}
}

// tidy forgets idle tenants. If no key waits, it forgets all of them. Otherwise, if there are many, it forgets the
// tenants that would start at the current level anyway.
func (t *tenants[K]) tidy() {
	waits := len(t.turns[classes].all) > 0
	if t.idle == 0 || waits && len(t.all) < max(t.most, aFew) {
		return
	}
	for name, of := range t.all {
		if of.isIdle() && (!waits || of.had <= t.served) {
			delete(t.all, name)
			t.idle--
		}
	}
	t.most = 2 * len(t.all)
	if len(t.all) == 0 { // neither maps nor the capacity of slices shrink while they are in use
		t.all, t.work = map[string]*tenant[K]{}, map[K]job[K]{}
		for n := range t.turns {
			t.turns[n].all = nil
		}
	}
}

// isIdle reports whether a tenant has neither queued nor processed keys.
func (of *tenant[K]) isIdle() bool { return of.queued+of.working == 0 }

// oldest returns the line whose first key has waited longest.
func (of *tenant[K]) oldest() (best *line[K]) {
	for class := range of.lines {
		l := &of.lines[class]
		if len(*l) > 0 && (best == nil || (*l)[0].since.Before((*best)[0].since)) {
			best = l
		}
	}
	return best
}

// first returns the key of a class, or of any, whose age counts for the tenant.
func (of *tenant[K]) first(n int) *place[K] {
	if n < classes {
		return of.lines[n][0]
	}
	return (*of.oldest())[0]
}

// turns is a heap of the tenants with keys of one class, or of any: the one that has used the least time is first,
// and among equal ones the one with the oldest key.
type turns[K comparable] struct {
	of  int
	all []*tenant[K]
}

func (l *turns[K]) Len() int { return len(l.all) }

func (l *turns[K]) Less(i, j int) bool {
	a, b := l.all[i], l.all[j]
	if x, y := a.had+a.atWork, b.had+b.atWork; x != y {
		return x < y
	}
	return a.first(l.of).before(b.first(l.of))
}

func (l *turns[K]) Swap(i, j int) {
	l.all[i], l.all[j] = l.all[j], l.all[i]
	l.all[i].index[l.of], l.all[j].index[l.of] = i, j
}

func (l *turns[K]) Push(x any) {
	of := x.(*tenant[K])
	of.index[l.of] = len(l.all)
	l.all = append(l.all, of)
}

func (l *turns[K]) Pop() any {
	last := len(l.all) - 1
	of := l.all[last]
	l.all[last], l.all = nil, l.all[:last]
	of.index[l.of] = -1
	return of
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"container/heap"
	"sync"
	"time"
)

// leastCharge is what a key costs its tenant at least, so that tenants take turns before the first pass of any has ended.
const leastCharge = 100 * time.Microsecond

// tenants share out the time of the workers: within a class, the next key is one of the tenant that has had the least of it. A
// tenant whose keys take long, or that has many, so holds up its own keys, and others hardly at all. A tenant that begins to wait
// begins where those are that are served. It is ahead of them where it had more: while other keys wait, no tenant is forgotten
// that has had more than was served.
type tenants[K comparable] struct {
	of func(K) string

	mu   sync.Mutex
	all  map[string]*tenant[K]
	work map[K]job[K]
	// turns are the tenants with keys of each class, and at last those with any; who has had the least is first.
	turns [classes + 1]turns[K]
	// served is what the tenant had had that was served last, and idle is how many tenants have nothing queued and nothing at work.
	served time.Duration
	idle   int
	// most is how many tenants there may be before those are forgotten that have had no more than was served.
	most int
}

// tenant is who shares the workers with others: a namespace.
type tenant[K comparable] struct {
	name  string
	lines [classes]line[K]
	// had is the time that workers have spent on its keys. At work is what keys are taken to cost that workers have, each the charge:
	// as much as the last one cost.
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
	} else if of.rests() {
		t.idle--
	}
	if p.tenant = of; of.queued == 0 { // it had no use for the time in which it did not wait
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

// pop takes out the key whose turn it is: the most urgent one, or the one that has waited longest.
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

// next returns whose turn it is, and the line of the key.
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
	if of.working--; of.rests() {
		t.idle++
	}
	t.place(of)
	t.tidy()
}

// place puts a tenant where it belongs among the others.
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

// tidy forgets tenants at rest: all of them when no key waits, and those that would begin anywhere else where they are
// when there are many.
func (t *tenants[K]) tidy() {
	waits := len(t.turns[classes].all) > 0
	if t.idle == 0 || waits && len(t.all) < max(t.most, aFew) {
		return
	}
	for name, of := range t.all {
		if of.rests() && (!waits || of.had <= t.served) {
			delete(t.all, name)
			t.idle--
		}
	}
	t.most = 2 * len(t.all)
	if len(t.all) == 0 { // neither maps nor what lies behind slices is given back while they are in use
		t.all, t.work = map[string]*tenant[K]{}, map[K]job[K]{}
		for n := range t.turns {
			t.turns[n].all = nil
		}
	}
}

// rests reports whether a tenant has nothing queued and nothing at work.
func (of *tenant[K]) rests() bool { return of.queued+of.working == 0 }

// oldest is the line whose first key has waited longest.
func (of *tenant[K]) oldest() (best *line[K]) {
	for class := range of.lines {
		l := &of.lines[class]
		if len(*l) > 0 && (best == nil || (*l)[0].since.Before((*best)[0].since)) {
			best = l
		}
	}
	return best
}

// first is the key of a class, or of any, that says when the tenant came.
func (of *tenant[K]) first(n int) *place[K] {
	if n < classes {
		return of.lines[n][0]
	}
	return (*of.oldest())[0]
}

// turns is a heap of the tenants with keys of one class, or of any: who has had the least is first, and of several the one whose
// key came first.
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

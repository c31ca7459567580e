// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

const (
	// window is the time in which deletions are counted.
	window = time.Minute
	// again is how long a held deletion waits before it asks again.
	again = 5 * time.Minute
	// turnMost bounds how long a deletion waits for its turn before it asks again, so that it stays known.
	turnMost = 5 * time.Minute
	// late is how much later than announced a waiting deletion may ask again before it counts as taken back.
	late = 2 * time.Minute
	// recordWait is how long a deletion waits for this process's record to be written before it asks again.
	recordWait = 2 * time.Second
)

// Deletion is a deletion that is about to begin.
type Deletion struct {
	Pool
	// Owner is the object whose reconcile asks.
	Owner Key
	// Object identifies the object to delete within the pool.
	Object string
	Cause  Cause
	// Gone is true if Count does not count the object, because the cache has lost it.
	Gone bool
	// Handler is the handler that asks and has to run again when the deletion may begin; empty for none.
	Handler string
	// Count counts all objects of the pool, and the young ones: created after a time, and not being deleted. It is called
	// at most once a second for each pool.
	Count func(after time.Time) (all, young int)
}

// Key is the key of an object.
type Key struct{ Namespace, Name string }

// Cause is why objects are to be deleted.
type Cause string

// The causes.
const (
	// Deleted: somebody has deleted the objects, or the owners of the children.
	Deleted Cause = "deletion"
	// Namespace: they are deleted with their namespace.
	Namespace Cause = "namespace"
	// Selector: the objects have left a selector, or a handler's filter no longer matches the owners.
	Selector Cause = "selector"
	// Configuration: no handler of this configuration makes such children.
	Configuration Cause = "configuration"
	// Handler: a handler that makes such children does not want these any longer.
	Handler Cause = "handler"
	// Recreation: a handler makes the children again, because a fixed field or the template has changed.
	Recreation Cause = "recreation"
)

// Causes returns all causes.
func Causes() []Cause {
	return []Cause{Deleted, Namespace, Selector, Configuration, Handler, Recreation}
}

// Deletions bounds the deletions of an operator, or of one resource. Its methods may be called by any goroutine.
type Deletions struct {
	limit dsl.DeletionLimits

	mu sync.Mutex
	// begun are the deletions of the last minute, in their order.
	begun []begun
	waits map[place]*waiting
	// owners counts the waiting deletions of each owner.
	owners map[Owner]int
	pools  map[Pool]*pool
	// releases are in force, or have just ended.
	releases []Release
	// ending are the namespaces that are being deleted.
	ending map[string]bool
	// tidied is when waits and pools that do not count any longer were dropped.
	tidied time.Time
	record record
	// changed gets a value when the record is to be written.
	changed chan<- struct{}
}

type begun struct {
	at time.Time
	place
	gone bool
}

// place identifies a waiting deletion.
type place struct {
	Pool
	owner  Key
	object string
}

type waiting struct {
	cause   Cause
	reason  Reason
	handler string
	gone    bool
	since   time.Time
	// until is when the deletion counts as taken back if it has not asked again. paused: the owner is paused, so its
	// reconciles cannot ask, and the deletion stays.
	until  time.Time
	paused bool
}

// by returns the owner whose reconciles ask for the deletion.
func (p place) by() Owner { return Owner{p.Resource, p.owner} }

// isOver reports whether the deletion counts as taken back.
func (w *waiting) isOver(now time.Time) bool { return !w.paused && !now.Before(w.until) }

// New returns the limits of an operator or of a resource. Changed has room for one value. It gets one when the record is
// to be written.
func New(limit dsl.DeletionLimits, changed chan<- struct{}) *Deletions {
	return &Deletions{
		limit: limit.WithDefaults(), waits: map[place]*waiting{}, owners: map[Owner]int{}, pools: map[Pool]*pool{}, ending: map[string]bool{}, changed: changed,
	}
}

// Ask asks whether a deletion may begin. If it may, it counts as begun. If it may not, it waits, and has to ask again
// after the time in the answer. Attempts of the same deletion within a minute count once.
func (d *Deletions) Ask(x Deletion, now time.Time) Answer {
	if d.unlimited() {
		return Answer{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.begun); n > 0 && now.Before(d.begun[n-1].at) {
		now = d.begun[n-1].at // reconciles take the time before they ask
	}
	d.tidyLocked(now)
	at := place{x.Pool, x.Owner, x.Object}
	if slices.ContainsFunc(d.begun, func(b begun) bool { return b.place == at }) {
		return Answer{} // another attempt
	}
	x.Cause = d.causeLocked(x)
	out := d.answerLocked(x, now)
	if out.CanBegin() {
		d.endLocked(at)
		d.begun = append(d.begun, begun{now, at, x.Gone})
		return out
	}
	w := d.waits[at]
	if w == nil {
		w = &waiting{since: now}
		d.waits[at] = w
		d.owners[at.by()]++
		d.poolLocked(x.Pool).waits++
	}
	w.cause, w.handler, w.gone, w.reason, w.until = x.Cause, x.Handler, x.Gone, out.Reason, now.Add(out.After+late)
	w.paused = false
	d.noteLocked()
	return out
}

// unlimited reports whether nothing is bounded, so that nothing needs to be known.
func (d *Deletions) unlimited() bool { return d.limit.PerMinute == dsl.Unlimited && !d.limit.Holds() }

// endLocked ends the wait of a deletion, if it waits.
func (d *Deletions) endLocked(at place) {
	if d.waits[at] == nil {
		return
	}
	delete(d.waits, at)
	if d.owners[at.by()]--; d.owners[at.by()] == 0 {
		delete(d.owners, at.by())
	}
	d.poolLocked(at.Pool).waits--
	d.noteLocked()
}

// Look returns what Ask would answer. No deletion begins or waits by it.
func (d *Deletions) Look(x Deletion, now time.Time) Answer {
	if d.unlimited() {
		return Answer{}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	x.Cause = d.causeLocked(x)
	return d.answerLocked(x, now)
}

// answerLocked decides about a deletion.
func (d *Deletions) answerLocked(x Deletion, now time.Time) Answer {
	if d.record.unread {
		return Answer{Reason: RecordPending, Limit: d.limit, Pool: x.Pool, Cause: x.Cause, After: recordWait}
	}
	if d.isReleasedLocked(x.Pool, x.Cause, now) {
		return Answer{}
	}
	if out := d.shareLocked(x, now); !out.CanBegin() {
		return out
	}
	return d.turnLocked(x, now)
}

// causeLocked returns the cause of a deletion: the namespace, if that is being deleted.
func (d *Deletions) causeLocked(x Deletion) Cause {
	if x.Cause == Deleted && d.ending[x.Owner.Namespace] {
		return Namespace
	}
	return x.Cause
}

// shareLocked holds a deletion if the share of its pool is used up. New objects replace deleted ones: an operator may end
// many children every minute, and begin as many.
func (d *Deletions) shareLocked(x Deletion, now time.Time) Answer {
	if !d.limit.Holds() {
		return Answer{}
	}
	p := d.poolLocked(x.Pool)
	p.count(x.Count, now)
	waits := p.waiting(now)
	if waits == 0 {
		p.spent = 0
	}
	begun := max(d.begunLocked(x.Pool, now), p.spent)
	if d.waits[place{x.Pool, x.Owner, x.Object}] == nil && waits == p.waits {
		waits++
	}
	all := p.all(begun+waits, d.goneLocked(x))
	if d.limit.Within(begun+waits-p.young, all) {
		return Answer{}
	}
	p.spent = begun
	out := Answer{Reason: ShareExceeded, Limit: d.limit, Pool: x.Pool, Cause: x.Cause, Waits: waits, All: all, After: again}
	if left := p.until.Sub(now); left > 0 {
		out.After = min(again, left) // what waited in the last term may have been taken back
	}
	return out
}

// poolLocked returns what is known about a pool.
func (d *Deletions) poolLocked(of Pool) *pool {
	p := d.pools[of]
	if p == nil {
		p = &pool{}
		d.pools[of] = p
	}
	return p
}

// begunLocked counts the deletions of a pool that have begun in the last minute.
func (d *Deletions) begunLocked(of Pool, now time.Time) (n int) {
	for _, b := range d.recentLocked(now) {
		if b.Pool == of {
			n++
		}
	}
	return n
}

// goneLocked counts the objects of a pool that the cache has lost, and whose deletion has begun in the last minute, waits
// or is asked for now.
func (d *Deletions) goneLocked(x Deletion) (n int) {
	if !x.Gone {
		return 0 // objects that are deleted stay in the cache until the operator lets them go
	}
	for _, b := range d.begun {
		if b.gone && b.Pool == x.Pool {
			n++
		}
	}
	for at, w := range d.waits {
		if w.gone && at.Pool == x.Pool {
			n++
		}
	}
	if d.waits[place{x.Pool, x.Owner, x.Object}] == nil {
		n++
	}
	return n
}

// turnLocked makes a deletion wait for its turn if perMinute is used up, or until the record is written.
func (d *Deletions) turnLocked(x Deletion, now time.Time) Answer {
	most := d.limit.PerMinute
	if most == dsl.Unlimited {
		return Answer{}
	}
	wait := Answer{Reason: RateExceeded, Limit: d.limit, Pool: x.Pool, Cause: x.Cause}
	if left := d.record.theirs.Sub(now); left > 0 {
		wait.After = left // another process may have begun as many as the limit allows
		return wait
	}
	free := d.record.inherited(most, now)
	recent := d.recentLocked(now)
	if len(recent)+free >= most {
		wait.After = d.turnAfterLocked(x, recent, now)
		return wait
	}
	if len(recent) >= most/unrecorded && !d.record.covers(now) {
		d.record.wanted = true
		d.noteLocked()
		wait.Reason, wait.After = RecordPending, recordWait
		return wait
	}
	return Answer{}
}

// recentLocked returns the deletions of the last minute.
func (d *Deletions) recentLocked(now time.Time) []begun {
	i, _ := slices.BinarySearchFunc(d.begun, now.Add(-window), func(b begun, at time.Time) int {
		return cmp.Or(b.at.Compare(at), -1)
	})
	return d.begun[i:]
}

// turnAfterLocked estimates when it is the turn of a deletion. Deletions that wait longer come first.
func (d *Deletions) turnAfterLocked(x Deletion, recent []begun, now time.Time) time.Duration {
	first := window
	if len(recent) > 0 {
		first = recent[0].at.Add(window).Sub(now)
	}
	mine := now
	if w := d.waits[place{x.Pool, x.Owner, x.Object}]; w != nil {
		mine = w.since
	}
	before := 0
	for _, w := range d.waits {
		if w.since.Before(mine) {
			before++
		}
	}
	return min(max(first, time.Second)+time.Duration(before/d.limit.PerMinute)*window, turnMost)
}

// tidyLocked drops deletions, releases and pools that no longer count.
func (d *Deletions) tidyLocked(now time.Time) {
	d.begun = slices.Delete(d.begun, 0, len(d.begun)-len(d.recentLocked(now)))
	d.releases = slices.DeleteFunc(d.releases, func(r Release) bool { return !now.Before(r.Until) })
	if now.Sub(d.tidied) < fresh {
		return // many ask at the same time
	}
	d.tidied = now
	for at, w := range d.waits {
		if w.isOver(now) {
			d.endLocked(at)
		}
	}
	for of, p := range d.pools {
		if p.idle(now) {
			delete(d.pools, of)
		}
	}
}

// noteLocked signals that the record has to be written.
func (d *Deletions) noteLocked() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// inheritance is how long deletions that waited in the last term count. By then all objects have had a
// reconcile, and the deletions that still wait have asked again.
const inheritance = 2 * time.Minute

// Without a record, a process begins a tenth of the deletions that perMinute allows: a single deletion costs no request.
// A new process assumes that several processes before it have begun as many in the last minute, as in a crash loop.
const (
	unrecorded = 10
	restarts   = 5
)

// valid is how long deletions may begin under one record. The next record is written before that time is over.
const valid = 70 * time.Second

// Record tells the next leader which deletions wait, and when it may begin some.
type Record struct {
	// Full is the time before which the next process begins no deletion: this one may have used up perMinute.
	Full time.Time `json:"full,omitzero"`
	// Waiting are the deletions that wait.
	Waiting []Group `json:"waiting,omitempty"`
}

// Empty reports whether there is nothing to leave.
func (r Record) Empty() bool { return r.Full.IsZero() && len(r.Waiting) == 0 }

// Group counts the deletions of a pool that wait with one cause and for one reason.
type Group struct {
	Pool
	Cause  Cause  `json:"cause"`
	Reason Reason `json:"reason"`
	// Count is their number, All the number of objects of the pool, and Since when the first one began to wait.
	Count int       `json:"count"`
	All   int       `json:"all,omitempty"`
	Since time.Time `json:"since"`
	// Begun is how many deletions of the pool had begun when one was held. They count as long as deletions wait.
	Begun int `json:"begun,omitempty"`
	// Namespaces are the first of the owners' namespaces, sorted.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Compare orders groups by their texts.
func (g Group) Compare(other Group) int {
	return cmp.Or(cmp.Compare(g.Resource, other.Resource), cmp.Compare(g.Kind, other.Kind), cmp.Compare(g.Cause, other.Cause), cmp.Compare(g.Reason, other.Reason))
}

// Counted says how many deletions wait, since when, and their cause.
func (g Group) Counted() string {
	where := ""
	if len(g.Namespaces) > 0 {
		where = " in " + strings.Join(g.Namespaces, ", ")
	}
	return fmt.Sprintf("%d of %d %s%s wait since %s (cause %s)", g.Count, g.All, g.Kind, where, g.Since.UTC().Format(time.RFC3339), g.Cause)
}

// String is Counted, and says what ends the wait.
func (g Group) String() string {
	if g.Reason == ShareExceeded {
		return g.Counted() + ": operator release lets them go"
	}
	return g.Counted() + " for their turn"
}

// record is the state of the record by which one leader tells the next how many deletions it may have begun.
type record struct {
	// theirs is until when another process may have used up the limit. begun is when the term began.
	theirs, begun time.Time
	// ours is until when this process may have used it up, as the written record says. wanted: a deletion waits for a
	// new record. absent: no record can be written.
	ours           time.Time
	wanted, absent bool
	// unread: the record of the process that led before is not known yet.
	unread bool
}

// covers reports whether deletions may begin now under the written record, or need none.
func (r *record) covers(now time.Time) bool { return r.absent || now.Before(r.ours.Add(-window)) }

// inherited returns how many deletions another process may have begun in the last minute without a record.
func (r *record) inherited(most int, now time.Time) int {
	if r.absent || r.begun.IsZero() || now.Sub(r.begun) >= window {
		return 0
	}
	return most * restarts / unrecorded
}

// Await begins a term whose record is not known yet. All deletions wait until Begin.
func (d *Deletions) Await() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.voidLocked()
	d.record = record{unread: true}
}

// voidLocked forgets what is known from an earlier term.
func (d *Deletions) voidLocked() {
	clear(d.waits)
	clear(d.owners)
	clear(d.pools)
	d.begun = nil
}

// Begin begins a term with the record of the process that led before. What this process knows from an earlier term is
// void. Recorded: the record can be written. Begin returns the owners of deletions that have asked since Await.
func (d *Deletions) Begin(last Record, recorded bool, now time.Time) []Wake {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.record.unread {
		d.voidLocked()
	}
	d.record = record{theirs: last.Full, begun: now, absent: !recorded}
	for _, g := range last.Waiting {
		p := d.poolLocked(g.Pool)
		p.until, p.since, p.most = now.Add(inheritance), now, max(p.most, g.All)
		p.inherited += g.Count
		p.spent = max(p.spent, g.Begun)
	}
	return d.wakesLocked(func(place, *waiting) bool { return true })
}

// Record returns the record to write now.
func (d *Deletions) Record(now time.Time) Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := Record{Waiting: d.groupsLocked(now)}
	for _, until := range []time.Time{d.record.theirs, d.record.ours} { // the new record must not be shorter
		if until.After(now) && until.After(out.Full) {
			out.Full = until.UTC()
		}
	}
	takesTurns := func(g Group) bool { return g.Reason != ShareExceeded }
	if d.record.wanted || slices.ContainsFunc(out.Waiting, takesTurns) {
		out.Full = now.Add(valid + window).UTC() // the last deletion that it covers may begin at its end
	}
	return out
}

// Recorded notes that a record was written, or that none can be written: absent. It returns the owners of deletions that
// waited for it. After another failure it is not called, and the deletions wait for the next attempt.
func (d *Deletions) Recorded(r Record, absent bool) []Wake {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.record.absent = absent; !absent {
		d.record.ours = r.Full
	}
	waited := d.record.wanted
	d.record.wanted = false
	if !waited {
		return nil
	}
	return d.wakesLocked(func(_ place, w *waiting) bool { return w.reason != ShareExceeded })
}

// Owner is an object whose reconciles ask for deletions.
type Owner struct {
	Resource string
	Key      Key
}

// Wake names an owner to reconcile, because deletions that its reconciles asked for may begin now. Handler has asked for
// them and has to run again; empty if no handler has.
type Wake struct {
	Owner
	Handler string
}

// wakesLocked returns the owners of some waiting deletions, each with a handler once.
func (d *Deletions) wakesLocked(which func(place, *waiting) bool) (out []Wake) {
	for at, w := range d.waits {
		if which(at, w) {
			out = append(out, Wake{at.by(), w.handler})
		}
	}
	slices.SortFunc(out, func(a, b Wake) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Key.Namespace+"/"+a.Key.Name, b.Key.Namespace+"/"+b.Key.Name), cmp.Compare(a.Handler, b.Handler))
	})
	return slices.Compact(out)
}

// Settle notes the end of a reconcile over an owner. Done: it wants no deletion any longer, so none of them waits. Settle
// returns the gravest reason why deletions of the owner wait; empty if none do. Until is when all of them count as taken
// back, unless the owner's reconciles ask again.
func (d *Deletions) Settle(owner Owner, done bool, now time.Time) (out Answer, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, w := range d.ofLocked(owner) {
		if w.paused = false; done {
			d.takeBackLocked(at)
		}
		if done || w.isOver(now) {
			continue
		}
		if out.CanBegin() || w.reason == ShareExceeded && out.Reason != ShareExceeded || w.reason == out.Reason && at.Kind < out.Kind {
			out = Answer{Reason: w.reason, Limit: d.limit, Pool: at.Pool, Cause: w.cause}
		}
		if w.until.After(until) {
			until = w.until
		}
	}
	return out, until
}

// TakeBack ends the wait of all deletions of an owner that is gone.
func (d *Deletions) TakeBack(owner Owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at := range d.ofLocked(owner) {
		d.takeBackLocked(at)
	}
}

// Pause notes that no reconcile over an owner begins, because it is paused. Its deletions wait until Settle or the next
// question, although they do not ask.
func (d *Deletions) Pause(owner Owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range d.ofLocked(owner) {
		w.paused = true
	}
}

// ofLocked yields the waiting deletions of an owner.
func (d *Deletions) ofLocked(owner Owner) iter.Seq2[place, *waiting] {
	return func(yield func(place, *waiting) bool) {
		if d.owners[owner] == 0 {
			return // the usual case
		}
		for at, w := range d.waits {
			if at.by() == owner && !yield(at, w) {
				return
			}
		}
	}
}

// takeBackLocked ends the wait of a deletion that nobody wants any longer. It makes up for one that has begun.
func (d *Deletions) takeBackLocked(at place) {
	p := d.poolLocked(at.Pool)
	p.spent = max(p.spent-1, 0)
	d.endLocked(at)
}

// Waiting returns the deletions that wait, in groups.
func (d *Deletions) Waiting(now time.Time) []Group {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.groupsLocked(now)
}

// namespacesMost is how many namespaces a group names.
const namespacesMost = 5

func (d *Deletions) groupsLocked(now time.Time) (out []Group) {
	for at, w := range d.waits {
		if w.isOver(now) {
			continue
		}
		i := slices.IndexFunc(out, func(g Group) bool { return g.Pool == at.Pool && g.Cause == w.cause && g.Reason == w.reason })
		if i < 0 {
			out, i = append(out, Group{Pool: at.Pool, Cause: w.cause, Reason: w.reason, Since: w.since}), len(out)
		}
		g := &out[i]
		g.Count++
		if w.since.Before(g.Since) {
			g.Since = w.since
		}
		if n, found := slices.BinarySearch(g.Namespaces, at.owner.Namespace); !found && at.owner.Namespace != "" {
			g.Namespaces = slices.Insert(g.Namespaces, n, at.owner.Namespace)
		}
	}
	for i := range out {
		g := &out[i]
		p := d.poolLocked(g.Pool)
		g.Begun = p.spent
		g.All = p.all(d.begunLocked(g.Pool, now)+p.waits, 0)
		g.Namespaces = g.Namespaces[:min(len(g.Namespaces), namespacesMost)]
	}
	slices.SortFunc(out, Group.Compare)
	return out
}

// NamespaceEnds notes whether a namespace is being deleted.
func (d *Deletions) NamespaceEnds(namespace string, ends bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ends {
		delete(d.ending, namespace)
		return
	}
	d.ending[namespace] = true
	for at, w := range d.waits {
		if at.owner.Namespace == namespace && w.cause == Deleted {
			w.cause = Namespace
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
)

// mostKeys is how many keys of one index are remembered singly for a reader. Past it, any change of the index counts.
const mostKeys = 64

// View is what one reconcile sees of the indexes. Whatever its handlers and filters ask for, they see as it was when the
// first of them did. What [View.For] returns may be used by any number of goroutines; the other methods are the reconcile's.
type View struct {
	readers *Readers
	owner   cache.ObjectName
	// recorded: what is read is remembered, and wakes the owner.
	recorded bool
	kept     bool
	// before is what was read before this reconcile, refreshed the same with what is there now.
	before, refreshed []slot
	changed           map[string]bool
	// missed are the indexes that could not be read.
	missed []*one

	mu     sync.Mutex
	opened map[*one]*snapshot
	// now is what is read in this reconcile, and news what was subscribed to for it.
	now  []slot
	news map[read]struct{}
}

// snapshot is an index as a reconcile sees it.
type snapshot struct {
	err error
	// base is the digest of everything before anything was read.
	base uint64
	keys []any
	// keysDigest is zero before anybody has asked for the keys.
	keysDigest uint64
	values     map[Key]found
}

type found struct {
	values []string
	digest uint64
}

// View returns what a reconcile over an owner sees. First: no reconcile has seen the owner before. Recorded: what is read is
// remembered, and wakes the owner; it is not where the owner is gone, or is no object.
func (r *Readers) View(owner cache.ObjectName, first, recorded bool) *View {
	if len(r.set.all) == 0 {
		return r.nothing
	}
	v := &View{readers: r, owner: owner, recorded: recorded}
	switch {
	case !recorded:
	case first:
		r.Forget(owner) // what another object of the name has read
	default:
		v.before = r.slots(owner)
	}
	return v
}

// Refresh finds out, before handlers run, which readers have read changed values. Again is how long it is until the owner
// must be looked at again, because an index cannot be read now and no event may report when it can; zero when
// it need not be.
func (v *View) Refresh() (again time.Duration) {
	for _, s := range v.before {
		next := slot{s.who, slices.Clone(s.sights)}
		for i, was := range s.sights {
			if v.unread(was.index) != nil {
				if wait := was.index.patience(); again == 0 || wait < again {
					again = wait
				}
				continue // what is known counts when it cannot be read now
			}
			if now := was.read.digest(); now != was.digest {
				v.note(s.handler)
				next.sights[i].digest = now
			}
		}
		v.refreshed = append(v.refreshed, next)
	}
	return again
}

// unread returns why an index cannot be read now. The owner is looked at when it can.
func (v *View) unread(x *one) error {
	if !v.recorded {
		return x.unread()
	}
	err := x.readers.Try(reader{v.readers, v.owner}, x.unread)
	if err != nil && !slices.Contains(v.missed, x) {
		v.missed = append(v.missed, x)
	}
	return err
}

func (v *View) note(handler string) {
	if v.changed == nil {
		v.changed = map[string]bool{}
	}
	v.changed[handler] = true
}

// patience is how long to wait until somebody looks whether the index can be read.
func (x *one) patience() time.Duration {
	if len(x.feed.Informers("")) > 0 {
		return source.ListingLook
	}
	return inbox.Patience
}

// Changed reports whether what a handler, or its filter, has read is not as it was.
func (v *View) Changed(handler string) bool { return v.changed[handler] }

// Keep remembers what was read, after the reconcile, once. Done: the changes that there were are dealt with; otherwise they
// are there for the next reconcile, too.
func (v *View) Keep(done bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.recorded || v.kept || len(v.before)+len(v.now) == 0 {
		return
	}
	v.kept = true
	kept := v.before
	if done {
		kept = v.refreshed
	}
	after := slices.Clone(v.now)
	for _, s := range kept {
		if !slices.ContainsFunc(v.now, func(n slot) bool { return n.who == s.who }) {
			after = append(after, s)
		}
	}
	after = slices.DeleteFunc(after, func(s slot) bool { return len(s.sights) == 0 })
	others := make([]read, 0, len(v.news))
	for one := range v.news {
		others = append(others, one)
	}
	v.readers.put(v.owner, after, others)
	for _, x := range v.readers.set.all {
		if !slices.Contains(v.missed, x) {
			x.readers.Found(reader{v.readers, v.owner})
		}
	}
	for _, s := range after {
		for _, at := range s.sights {
			if at.key == all && at.digest != at.read.digest() {
				v.readers.inbox.IndexSeen(v.owner, breaker.Version{}) // it changed before anybody was to be woken for all of it
			}
		}
	}
}

// Failed reports whether an index could not be read in this reconcile.
func (v *View) Failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.opened {
		if s.err != nil {
			return true
		}
	}
	return false
}

// For returns the indexes for a handler, or for its filter where that is asked for a cause. It is asked again: what it
// read before does not count any more, unless it was in this reconcile.
func (v *View) For(handler string, filter dsl.Cause) dsl.Indexes {
	if len(v.readers.set.all) == 0 {
		return v.readers.set.Live()
	}
	w := who{handler, filter}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.recorded && v.slotLocked(w) == nil {
		v.now = append(v.now, slot{who: w})
	}
	return &reading{v, w}
}

// slotLocked returns what somebody has read in this reconcile. The lock is held.
func (v *View) slotLocked(w who) *slot {
	i := slices.IndexFunc(v.now, func(s slot) bool { return s.who == w })
	if i < 0 {
		return nil
	}
	return &v.now[i]
}

// openLocked returns an index as this reconcile sees it. The lock is held.
func (v *View) openLocked(x *one) *snapshot {
	if known := v.opened[x]; known != nil {
		return known
	}
	s := &snapshot{values: map[Key]found{}, err: v.unread(x), base: x.values.digestOfAll()}
	if v.opened == nil {
		v.opened = map[*one]*snapshot{}
	}
	v.opened[x] = s
	return s
}

// subscribeLocked has the owner woken when something changes. It comes before the read. The lock is held.
func (v *View) subscribeLocked(r read) {
	if !v.recorded {
		return
	}
	if v.news == nil {
		v.news = map[read]struct{}{}
	}
	if _, known := v.news[r]; !known {
		v.news[r] = struct{}{}
		r.index.readers.Add(reader{v.readers, v.owner}, r.key)
	}
}

// recordLocked notes what somebody has read. The lock is held.
func (v *View) recordLocked(w who, at sight) {
	s := v.slotLocked(w)
	if s == nil || slices.ContainsFunc(s.sights, func(known sight) bool {
		return known.index == at.index && (known.key == at.key || known.key == all)
	}) {
		return
	}
	single := func(known sight) bool { return known.index == at.index && known.key != set }
	several := 0
	for _, known := range s.sights {
		if single(known) {
			several++
		}
	}
	if s.sights = append(s.sights, at); several < mostKeys {
		return
	}
	whole := read{at.index, all}
	v.subscribeLocked(whole)
	s.sights = append(slices.DeleteFunc(s.sights, single), sight{whole, v.opened[at.index].base})
}

// reading is dsl.Indexes for somebody.
type reading struct {
	view *View
	who  who
}

var (
	_ dsl.Indexes     = (*reading)(nil)
	_ dsl.IndexReader = (*opened)(nil)
)

// Names are those of the indexes.
func (r *reading) Names() []string { return r.view.readers.set.names() }

// Open returns an index. See [dsl.Indexes].
func (r *reading) Open(name string) (dsl.IndexReader, error) {
	x, err := r.view.readers.set.named(name)
	if err != nil {
		return nil, err
	}
	v := r.view
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.openLocked(x)
	if s.err != nil {
		v.recordLocked(r.who, sight{read{x, set}, 0})
		return nil, s.err
	}
	return &opened{r, x, s}, nil
}

// opened is dsl.IndexReader for somebody.
type opened struct {
	*reading
	index *one
	seen  *snapshot
}

// Get returns the values under a key.
func (o *opened) Get(key any) ([]string, error) {
	k, err := keyOf(key)
	if err != nil {
		return nil, err
	}
	v, r := o.view, read{o.index, k}
	v.mu.Lock()
	defer v.mu.Unlock()
	now, known := o.seen.values[k]
	if !known {
		v.subscribeLocked(r)
		now.values, now.digest = o.index.values.Get(k)
		o.seen.values[k] = now
	}
	v.recordLocked(o.who, sight{r, now.digest})
	return slices.Clone(now.values), nil
}

// Has reports whether there are any.
func (o *opened) Has(key any) (bool, error) {
	values, err := o.Get(key)
	return len(values) > 0, err
}

// Keys returns the keys that have values.
func (o *opened) Keys() []any {
	v, r := o.view, read{o.index, set}
	v.mu.Lock()
	defer v.mu.Unlock()
	if o.seen.keysDigest == 0 {
		v.subscribeLocked(r)
		keys, digest := o.index.values.Keys()
		for _, key := range keys {
			o.seen.keys = append(o.seen.keys, key.Value())
		}
		o.seen.keysDigest = digest
	}
	v.recordLocked(o.who, sight{r, o.seen.keysDigest})
	return slices.Clone(o.seen.keys)
}

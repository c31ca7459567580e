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

// mostKeys is how many keys of one index are recorded singly for a reader. Beyond that, any change of the index counts.
const mostKeys = 64

// View gives one reconcile access to the indexes. All its handlers and filters see an index as it was when the first of
// them read it. The result of [View.For] may be used by any number of goroutines; the other methods belong to the
// reconcile.
type View struct {
	readers *Readers
	owner   cache.ObjectName
	// recorded is true if reads are recorded, and wake the owner.
	recorded bool
	kept     bool
	// before has the reads from before this reconcile. Refreshed has the same reads with their present digests.
	before, refreshed []slot
	changed           map[string]bool
	// missed are the indexes that could not be read.
	missed []*one

	mu     sync.Mutex
	opened map[*one]*snapshot
	// now has the reads of this reconcile. News has the parts that it has subscribed to.
	now  []slot
	news map[read]struct{}
}

// snapshot is an index as a reconcile sees it.
type snapshot struct {
	err error
	// base is the digest of everything before the first read.
	base uint64
	keys []any
	// keysDigest is zero before the first read of the keys.
	keysDigest uint64
	values     map[Key]found
}

type found struct {
	values []string
	digest uint64
}

// View returns the view of a reconcile over an owner. First is true if no reconcile has seen the owner before. If
// recorded is true, reads are recorded and wake the owner. It is false if the owner is gone, or is no object.
func (r *Readers) View(owner cache.ObjectName, first, recorded bool) *View {
	if len(r.set.all) == 0 {
		return r.nothing
	}
	v := &View{readers: r, owner: owner, recorded: recorded}
	switch {
	case !recorded:
	case first:
		r.Forget(owner) // the reads of another object of the name
	default:
		v.before = r.slots(owner)
	}
	return v
}

// Refresh finds out, before handlers run, which readers have read values that have changed. Again is the delay until the
// owner must be looked at again; zero if it need not be. It is set if an index cannot be read now, because no event may
// report when it can.
func (v *View) Refresh() (again time.Duration) {
	for _, s := range v.before {
		next := slot{s.who, slices.Clone(s.sights)}
		for i, was := range s.sights {
			if v.unread(was.index) != nil {
				if wait := was.index.patience(); again == 0 || wait < again {
					again = wait
				}
				continue // the earlier read counts until the index can be read
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

// unread returns an error if an index cannot be read now. The owner is woken when it can.
func (v *View) unread(x *one) error {
	if !v.recorded {
		return x.unread()
	}
	err := x.readers.Read(reader{v.readers, v.owner}, x.unread)
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

// patience returns how long to wait until the next check whether the index can be read.
func (x *one) patience() time.Duration {
	if len(x.feed.Informers("")) > 0 {
		return source.ListingInterval
	}
	return inbox.Patience
}

// Changed reports whether something that a handler, or its filter, has read is different now.
func (v *View) Changed(handler string) bool { return v.changed[handler] }

// Keep stores the reads after the reconcile, once. Done is true if the reconcile has dealt with the changes. Otherwise
// the next reconcile sees them again.
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
			x.readers.Recovered(reader{v.readers, v.owner})
		}
	}
	for _, s := range after {
		for _, at := range s.sights {
			if at.key == all && at.digest != at.read.digest() {
				v.readers.inbox.OnIndexEvent(v.owner, breaker.Version{}) // it changed before the subscription to all of it
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

// For returns the indexes for a handler, or for its filter for a cause. The handler or filter runs again, so its reads
// in earlier reconciles no longer count.
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

// slotLocked returns the reads of a reader in this reconcile. The lock is held.
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

// subscribeLocked makes changes of a part wake the owner. It must be called before the read. The lock is held.
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

// recordLocked records a read. The lock is held.
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

// reading implements [dsl.Indexes] for one reader.
type reading struct {
	view *View
	who  who
}

var (
	_ dsl.Indexes     = (*reading)(nil)
	_ dsl.IndexReader = (*opened)(nil)
)

// Names returns the names of the indexes.
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

// opened implements [dsl.IndexReader] for one reader.
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

// Has reports whether there are values under a key.
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

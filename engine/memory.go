// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/loop"
	"github.com/handwerk-dev/handwerk/engine/ops"
	"github.com/handwerk-dev/handwerk/engine/timer"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// entry is what informers tell about one key, for the pass to take. It is guarded by the
// resource's lock; its memory belongs to the pass alone.
type entry struct {
	uid types.UID
	// fresh: the object appeared after the first listing.
	fresh bool
	// came: an object of this key appeared or changed since the last pass began.
	came bool
	// event is what the watch has told of the object since the last pass, empty for nothing.
	event apiwatch.EventType
	// child: a child had changed before the last pass, which could not deal with it.
	child bool
	// changed are the versions of children that have changed since the last pass, by UID; empty
	// for one that is gone.
	changed map[types.UID]string
	// related are changes of related objects since the last pass, nil when there are none.
	related *relatedNews
	// parked: the last pass was put off until the cache has caught up.
	parked bool
	// granted are handlers that lacked a right which has been given since.
	granted []string
	// gone are objects of this key that were deleted and not seen off yet.
	gone []*departed
	// echoes are the versions of this operator's own writes to children, by UID: their events
	// are no news.
	echoes map[types.UID]string
	// expects are writes to the object by passes over others.
	expects []await
	// record lists the object's labelled children as its last pass knew them.
	record *child.Record
	// standing is how the last pass that was finished left the object, empty before the first; broken:
	// the last one could not be finished.
	standing ops.Standing
	broken   bool

	memory *memory
}

// memory is what this process knows of one object beyond what is stored on it. It lasts as long
// as the object and the leadership; losing it costs a resume.
type memory struct {
	uid types.UID
	// seen: a pass over the object was finished.
	seen bool
	// told: what passes for a child and is none was named in the log.
	told bool
	// deletion is the moment at which the object was deleted, as the last pass knew it; empty while it lives.
	deletion string
	// parted: the delete handlers are done.
	parted bool
	// book is what the object's handlers have handled, once known; mark tells what of it is stored.
	book  book.Book
	known bool
	mark  string
	// generation: it is stored in status.observedGeneration.
	generation bool
	// outcomes tells what outcomes are among what is stored.
	outcomes string
	// unsaved is since when the book has an outcome that is not stored, zero when it has none.
	unsaved time.Time
	// stirred are handlers that are to run for what others have written to children in the last pass.
	stirred []string
	// foreign is a text of others that was found in place of this one, and replaced.
	foreign string
	// stamped: something changes the object at each write, it seems.
	stamped bool
	// refused are handlers whose changes the server did not take the last time.
	refused map[string]bool
	// sent is the book as it was sent to be stored last, nil once the answer is there.
	sent *book.Book
	// resync is when the object's resync period ends; zero before the first pass.
	resync time.Time
	// event is what the watch told last to handlers of events.
	event apiwatch.EventType
	// ticks are the resource's timers for this object, nil where there are none.
	ticks []timer.Tick
	// kin is what handlers last saw of each of the resource's relations, nil before the first pass;
	// version is the object's own, by which it was selected.
	kin     []kin
	version string
	// waits are the objects under whose UIDs the object is put aside.
	waits []types.UID
	// awaits are own writes that the cache must show before the next pass.
	awaits []await
	// parked is since when the object waits for them, or when the server was last asked about them;
	// zero while it does not wait.
	parked time.Time
	// futile are changes that the server does not make, nil when there are none; see patch.Target.
	// They were so when the CRD had changed as often as schemas says.
	futile  []uint64
	schemas int64
	// settled are children that the server rewrote; see child.Applier.
	settled map[string]string
	// rivals are the children that two handlers want, nil where there are none.
	rivals map[childID]*rivalry
	// ties is about the object's labelled children, nil where it has no record of any.
	ties *ties
	// failures counts passes in a row that ended in an error.
	failures int
	// baffled are the object's filters that failed when they were asked last.
	baffled map[doubt]puzzle
	// troubles are failures of which the log tells, by handler; see passItself.
	troubles map[string]*trouble
	// owes: the condition that says which handlers fail could not be written.
	owes    bool
	breaker loop.Breaker
}

// departed is an object that is gone, with what is remembered of it.
type departed struct {
	object *watch.Object
	memory *memory
	// unseen: nobody saw it go, and nothing has said yet that it is gone. Only the pass uses it and
	// what follows: looks counts how often the object was looked for, next is when to look again.
	unseen bool
	looks  int
	next   time.Time
	// told: handlers of events have heard of it.
	told bool
}

func newMemory(uid types.UID) *memory {
	return &memory{uid: uid}
}

// entryLocked returns the key's entry, making it. The resource's lock is held.
func (r *resource) entryLocked(key cache.ObjectName) *entry {
	e, found := r.entries[key]
	if !found {
		e = &entry{}
		r.entries[key] = e
	}
	return e
}

// news is what a pass takes from its key's entry.
type news struct {
	fresh, child bool
	event        apiwatch.EventType
	related      *relatedNews
	granted      []string
	expects      []await
	// of are handlers that are to look again though others are not: as if a child had changed, or at the next
	// resync.
	of     []string
	gone   []*departed
	memory *memory
}

// told reports whether the deletion of the object that is remembered is among the news.
func (n news) told() bool {
	return slices.ContainsFunc(n.gone, func(d *departed) bool {
		uid := d.object.GetUID()
		return uid == n.memory.uid || uid == "" // of one that nobody saw go, only the name may be known
	})
}

// take hands the key's news to a pass.
func (r *resource) take(key cache.ObjectName) news {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entryLocked(key)
	n := news{fresh: e.fresh, event: e.event, child: e.child || len(e.changed) > 0, related: e.related, granted: e.granted, expects: e.expects, gone: e.gone, memory: e.memory}
	e.event, e.child, e.changed, e.related, e.granted, e.parked, e.gone, e.came, e.expects = "", false, nil, nil, nil, false, nil, false, nil
	return n
}

// keep remembers an object's memory after a pass, and what the pass could not see off.
func (r *resource) keep(key cache.ObjectName, m *memory, gone []*departed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entryLocked(key)
	e.gone = append(gone, e.gone...)
	if e.memory != m {
		e.standing, e.broken = "", false
	}
	e.memory = m
}

// forget is keep for a key that has no object any more: its entry goes too. It stays when something
// came while the pass looked, for then another object has the key, and the next pass must learn that
// it is a new one.
func (r *resource) forget(key cache.ObjectName, gone []*departed) {
	r.keep(key, nil, gone)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entryLocked(key); len(e.gone) == 0 && !e.child && len(e.changed) == 0 && !e.came {
		delete(r.entries, key)
		delete(r.lacking, key)
	}
}

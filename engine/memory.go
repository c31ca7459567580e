// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/claim"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/loop"
	"github.com/handwerk-dev/handwerk/engine/related"
	"github.com/handwerk-dev/handwerk/engine/timer"
)

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
	// related is what handlers last saw of related objects.
	related related.State
	// writes are own ones that the cache must show before the next pass.
	writes inbox.Writes
	// futile are changes that the server does not make, nil when there are none; see patch.Target.
	// They were so when the CRD had changed as often as schemas says.
	futile  []uint64
	schemas int64
	// settled are children that the server rewrote; see child.Applier.
	settled map[string]string
	// claims are about the children that two handlers want.
	claims claim.Memory[childID]
	// ties is about the object's labelled children, nil where it has no record of any.
	ties *ties
	// baffled are the object's filters that failed when they were asked last.
	baffled map[doubt]puzzle
	// troubles are failures of which the log tells, by handler; see passItself.
	troubles map[string]*trouble
	// owes: the condition that says which handlers fail could not be written.
	owes    bool
	breaker loop.Breaker
}

// tombstone is an object that is gone, with what is remembered of it, and turn what a pass has taken for its key.
type (
	tombstone = inbox.Tombstone[memory]
	turn      = inbox.Turn[memory]
)

func newMemory(uid types.UID) *memory {
	return &memory{uid: uid}
}

// changes are what a pass has to deal with.
type changes struct {
	inbox.Changes
	// of are handlers that are to look again though others are not: as if a child had changed, or at the next
	// resync.
	of []string
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/engine/attempt"
	"github.com/handwerk-dev/handwerk/engine/family"
	"github.com/handwerk-dev/handwerk/engine/filter"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/ledger"
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
	// parted: the delete handlers are done.
	parted bool
	// ledger is what the object's handlers have handled.
	ledger ledger.Memory
	// stirred are handlers that are to run for what others have written to children in the last pass.
	stirred []string
	// refused are handlers whose changes the server did not take the last time.
	refused map[string]bool
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
	futile   []uint64
	schemas  int64
	children family.Memory
	// filters are those of the object that failed when they were asked last.
	filters filter.Faults
	// troubles are failures of which the log tells, by handler; see passItself.
	troubles attempt.Troubles
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

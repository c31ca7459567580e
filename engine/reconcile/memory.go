// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/cache/related"
	"github.com/handwerk-dev/handwerk/engine/children"
	"github.com/handwerk-dev/handwerk/engine/children/prune"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
	"github.com/handwerk-dev/handwerk/engine/decide/filter"
	"github.com/handwerk-dev/handwerk/engine/decide/pause"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
	"github.com/handwerk-dev/handwerk/engine/reconcile/attempt"
	"github.com/handwerk-dev/handwerk/engine/reconcile/machine"
)

// ObjectState is what this process knows of one object beyond what is stored on it. It lasts as long
// as the object and the leadership; losing it costs a resume. Only a reconcile of the object's key may use it.
type ObjectState struct {
	UID types.UID
	// Seen: a reconcile over the object was finished.
	Seen bool
	// Finalized: the delete handlers are done.
	Finalized bool
	// Owes: the condition that says which handlers fail could not be written.
	Owes bool
	// Foreign: the condition Ready is another field manager's.
	Foreign bool
	// Renewed: the operator's entries in managedFields of a dropped version were renewed, or others' are in the way.
	Renewed bool
	// Ready is a digest of the condition Ready that the object has from this operator, as far as this process knows.
	Ready uint64
	// Ledger is what the object's handlers have handled.
	Ledger progress.Memory
	// Resync is when the object's resync period ends; nil before the first reconcile, and without a period.
	Resync *time.Time
	// Again are the handlers that asked to be run again; nil for none.
	Again *Alarm
	// Sweep is about children that no handler has any more.
	Sweep prune.SweepMemory
	// Breaker counts passes that write; nil before the first one.
	Breaker *breaker.Breaker
	// Rest is there from Wake to Sleep; between reconciles it is nil where it says nothing.
	*Rest
}

// Rest is what is remembered of few objects, or for short.
type Rest struct {
	// Rerun are handlers that are to run for what others have written to children in the last reconcile.
	Rerun []string
	// Refused are handlers whose changes the server did not take the last time.
	Refused map[string]bool
	// Event is the watch's last event, for handlers of cause event.
	Event apiwatch.EventType
	// Ticks are the resource's timers for this object, nil where there are none.
	Ticks []Tick
	// Related is what handlers last saw of related objects.
	Related related.State
	// Writes are own ones that the cache must show before the next reconcile.
	Writes inbox.Writes
	// Ignored are changes that the server does not make, nil when there are none; see patch.Target.
	// They were so when the CRD had changed as often as Schemas says.
	Ignored  []uint64
	Schemas  int64
	Children children.Memory
	// Filters are those of the object that failed when they were asked last.
	Filters filter.Faults
	// Troubles are the failures that the log names, by handler; the key is empty for those of reconciles themselves.
	Troubles attempt.Troubles
	// Memo is what handlers keep, nil before one asks for it; see Kept.
	Memo *dsl.Memo
	// Shared: others than reconciles have the memo.
	Shared bool
	// Done is what machines have done and could not write, by handler; nil where there is nothing.
	Done map[string]machine.Done
	// Rows are how often in a row handlers have asked to run at once; nil where none has.
	Rows map[string]breaker.Row
	// Grown is how much more memory the last reconcile took than its object is worth; zero where that was little.
	Grown int
	// Woken is what woke the object last, as long as something of that is left to do.
	Woken breaker.Woken
	// Halt is the pause in which the last reconcile found the object; nil without a pause.
	Halt *Halt
	// Outcomes are what came of handlers that others read, as the last reconcile has left it; nil where none is read.
	Outcomes dsl.Outcomes
	// Unrenewed is the error of the last attempt to renew entries in managedFields, as the log has it; empty if that did not fail.
	Unrenewed string
	// Settled are types of conditions that were to be retired: they are gone, or somebody else's.
	Settled []string
}

// Halt is what is remembered of the pause of an object.
type Halt struct {
	// By is where it is declared.
	By pause.By
	// Said is what the object's condition says of it, as this process has written it; empty where it has not.
	Said string
}

// Itself stands for the reconcile's own requests among the handlers that were refused: its write, and its look for an
// object whose deletion the watch did not show.
const Itself = ""

// Tombstone is an object that is gone, with what is remembered of it.
type Tombstone = inbox.Tombstone[ObjectState]

// Batch is what a reconcile has taken for its key.
type Batch = inbox.Batch[ObjectState]

// newMemory returns the memory of an object that no reconcile has seen. It is awake.
func newMemory(uid types.UID) *ObjectState { return &ObjectState{UID: uid, Rest: &Rest{}} }

// Wake makes the memory ready for use. It is nil for an object that is not remembered.
func (m *ObjectState) Wake() *ObjectState {
	if m != nil && m.Rest == nil {
		m.Rest = &Rest{}
	}
	return m
}

// borrow wakes the memory for an answer, which remembers nothing. What is returned puts it back as it was.
func (m *ObjectState) borrow() (giveBack func()) {
	if m == nil {
		return func() {}
	}
	m.Wake()
	writes, filters, event := m.Writes.Clone(), m.Filters.Clone(), m.Event
	return func() { m.Writes, m.Filters, m.Event = writes, filters, event }
}

// Refuse notes that the server did not take what a handler wants.
func (m *ObjectState) Refuse(id string) {
	if m.Refused == nil {
		m.Refused = map[string]bool{}
	}
	m.Refused[id] = true
}

// Row notes how often in a row a handler has asked to run at once.
func (m *ObjectState) Row(id string, row breaker.Row) {
	switch {
	case row == 0:
		delete(m.Rows, id)
	case m.Rows == nil:
		m.Rows = map[string]breaker.Row{id: row}
	default:
		m.Rows[id] = row
	}
}

// Kept is what handlers keep of the object. It is made when it is asked for, and dropped with what says nothing when it
// is empty still.
func (m *ObjectState) Kept() *dsl.Memo {
	if m.Memo == nil {
		m.Memo = &dsl.Memo{}
	}
	return m.Memo
}

// Share is Kept for who has it beyond a reconcile, as a daemon does: it is not dropped from then on.
func (m *ObjectState) Share() *dsl.Memo {
	m.Shared = true
	return m.Kept()
}

// Back is what is remembered of an object that is back in sight, now being what else is, nil for nothing: machines that have gone
// through states of deletion meanwhile run from their beginning.
func (m *ObjectState) Back(now *ObjectState) *ObjectState {
	if m.Rest == nil {
		return now
	}
	for _, id := range slices.Sorted(maps.Keys(m.Done)) {
		if m.Done[id].Book == nil {
			continue
		}
		if now == nil || now.UID != m.UID {
			now = newMemory(m.UID)
			now.Writes = m.Writes
		}
		now.Wake().Done, now.Rerun = m.Done, append(now.Rerun, id)
	}
	return now
}

// Gone notes that the object is gone, or another one has its name: the log counts it no more. A nil memory is that of an
// object that is not remembered.
func (m *ObjectState) Gone() {
	if m != nil && m.Rest != nil {
		m.Troubles.Gone()
	}
}

// Sleep ends its use: what says nothing is dropped. It may end more than once.
func (m *ObjectState) Sleep() {
	if m == nil || m.Rest == nil {
		return
	}
	if m.Ignored == nil {
		m.Schemas = 0 // which counts for those alone
	}
	if len(m.Done) == 0 {
		m.Done = nil
	}
	if len(m.Rows) == 0 {
		m.Rows = nil
	}
	if m.Memo != nil && !m.Shared && m.Memo.Empty() {
		m.Memo = nil
	}
	if reflect.ValueOf(m.Rest).Elem().IsZero() {
		m.Rest = nil
	}
}

// CaughtUp reports whether caches show this operator's last writes to the object, its children and what else its
// handlers wrote to, as far as the server knows of them.
func (m *ObjectState) CaughtUp(ctx context.Context, read inbox.Read) bool {
	return m == nil || m.Writes.Shown() || m.Writes.Recall(ctx, read)
}

// expecting wakes the memory, and returns it with more writes to wait for: writes of reconciles over other objects, and own writes
// of earlier reconciles over this object.
func (m *ObjectState) expecting(writes, own []inbox.Write) *ObjectState {
	if m = m.Wake(); m != nil {
		m.Writes.Resume(own)
	}
	if len(writes) == 0 {
		return m
	}
	if m == nil {
		m = newMemory(writes[len(writes)-1].UID)
	}
	m.Writes.Expect(m.UID, writes)
	return m
}

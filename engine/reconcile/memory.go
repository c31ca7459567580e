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

// ObjectState is what this process knows about one object beyond what the object itself stores. It lasts as long as the
// object and the leadership; if it is lost, handlers run for a resume. A reconcile has a copy of its own, and the next
// reconcile begins with it.
type ObjectState struct {
	commonState
	rareState
}

// StoredState is an [ObjectState] between reconciles. Rare is nil if it would be empty.
type StoredState struct {
	commonState
	rare *rareState
}

// commonState has the state that most objects have.
type commonState struct {
	// UID is the uid of the object; empty if no object has the key.
	UID types.UID
	// Seen: a reconcile over the object was finished.
	Seen bool
	// DeletionBegun: the limits have let the delete handlers begin. Finalized: they are done.
	DeletionBegun, Finalized bool
	// Owes: conditions of the engine could not be written, and are sent later.
	Owes bool
	// Foreign: another field manager owns the condition Ready.
	Foreign bool
	// Renewed: entries of dropped versions in managedFields were looked for once. The operator's own are renewed, unless
	// entries of others prevent that.
	Renewed bool
	// Ready is a digest of the condition Ready that this operator has set, as far as this process knows.
	Ready uint64
	// Progress is the handlers' progress.
	Progress progress.Memory
	// Resync is when the object's resync period ends; nil before the first reconcile, or without a period.
	Resync *time.Time
	// Again are the handlers that asked to run again; nil for none.
	Again *Alarm
	// Prune is the state of the search for children that no handler makes any longer.
	Prune prune.Memory
	// Breaker counts reconciles that write; nil before the first one.
	Breaker *breaker.Breaker
}

// rareState has the state that few objects need, or that is needed for a short time.
type rareState struct {
	// Rerun are handlers that the next reconcile runs, because others have written children in the last one.
	Rerun []string
	// Rejected are handlers whose changes the server rejected the last time.
	Rejected map[string]bool
	// Event is the watch's last event, for handlers of cause event.
	Event apiwatch.EventType
	// Ticks are the next runs of the resource's timers for this object, nil without timers.
	Ticks []Tick
	// Related is what handlers last saw of related objects.
	Related related.State
	// Writes are own writes that caches must show before the next reconcile.
	Writes inbox.Writes
	// Ignored are changes that the server ignores, nil for none; see patch.Target. They hold while the CRD's change
	// count is Schemas.
	Ignored  []uint64
	Schemas  int64
	Children children.Memory
	// Filters are the filters that failed in their last evaluation.
	Filters filter.Faults
	// Troubles are the failures that the log has, by handler. The empty key is for reconciles themselves.
	Troubles attempt.Troubles
	// Memo is the handlers' memory about the object, nil before a handler asks for it; see Kept.
	Memo *dsl.Memo
	// Shared: somebody beside reconciles holds the memo.
	Shared bool
	// Done has the work of machines that is not written yet, by handler; nil for none.
	Done map[string]machine.Done
	// Rows counts how often in a row handlers have asked to run at once; nil for none.
	Rows map[string]breaker.Streak
	// Grown is how much more memory the last reconcile used than the estimate; zero if it was little.
	Grown int
	// Woken is what woke the object last, while work for it remains.
	Woken breaker.Woken
	// Halt is the pause that the last reconcile found; nil without a pause.
	Halt *Halt
	// Held is the message of the Event about the limit that holds the deletion; empty if none was sent.
	Held string
	// Outcomes are the handlers' outcomes after the last reconcile; nil if no handler reads outcomes.
	Outcomes dsl.Outcomes
	// Unrenewed is the logged error of the last attempt to renew entries in managedFields; empty if it succeeded.
	Unrenewed string
	// Unready are children that run Pods and are not ready; nil for none.
	Unready map[types.UID]unreadyChild
	// Settled are types of conditions whose removal is done: they are gone, or another manager owns them.
	Settled []string
}

// Halt is the pause of an object, as this process has noted it.
type Halt struct {
	// By is where the pause is declared.
	By pause.By
	// Said is the text of the object's condition Paused that this process has written; empty if it has not.
	Said string
}

// Itself stands for the reconcile itself where requests and failures are noted by handler. Its own requests are its write,
// and the read that confirms a missed deletion.
const Itself = ""

// Tombstone is an object that is gone, with its state.
type Tombstone = inbox.Tombstone[StoredState]

// Batch has the changes that a reconcile has taken for its key.
type Batch = inbox.Batch[StoredState]

// newState returns the state of an object that no reconcile has seen.
func newState(uid types.UID) ObjectState { return ObjectState{commonState: commonState{UID: uid}} }

// Open returns the state for a reconcile. It is zero if nothing is stored.
func (m *StoredState) Open() (out ObjectState) {
	if m == nil {
		return out
	}
	out.commonState = m.commonState
	if m.rare != nil {
		out.rareState = *m.rare
	}
	return out
}

// Stored returns the state for the time until the next reconcile. It drops the empty parts.
func (m *ObjectState) Stored() *StoredState {
	if m.Ignored == nil {
		m.Schemas = 0 // which counts only for them
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
	out := &StoredState{commonState: m.commonState}
	if !reflect.ValueOf(&m.rareState).Elem().IsZero() {
		out.rare = new(rareState)
		*out.rare = m.rareState
	}
	return out
}

// HasRare reports whether the state has more than most objects have. Tests use it.
func (m *StoredState) HasRare() bool { return m.rare != nil }

// forAnswer returns a copy whose changes do not reach the state of reconciles.
func (m ObjectState) forAnswer() ObjectState {
	m.Writes, m.Filters = m.Writes.Clone(), m.Filters.Clone()
	return m
}

// Reject notes that the server rejected a handler's changes.
func (m *ObjectState) Reject(id string) {
	if m.Rejected == nil {
		m.Rejected = map[string]bool{}
	}
	m.Rejected[id] = true
}

// Row notes how often in a row a handler has asked to run at once.
func (m *ObjectState) Row(id string, row breaker.Streak) {
	switch {
	case row == 0:
		delete(m.Rows, id)
	case m.Rows == nil:
		m.Rows = map[string]breaker.Streak{id: row}
	default:
		m.Rows[id] = row
	}
}

// Kept returns the memo that handlers keep for the object, and makes it if there is none. Stored drops an empty memo.
func (m *ObjectState) Kept() *dsl.Memo {
	if m.Memo == nil {
		m.Memo = &dsl.Memo{}
	}
	return m.Memo
}

// Share returns the memo for somebody who holds it beyond a reconcile, such as a daemon. Stored does not drop it from
// then on.
func (m *ObjectState) Share() *dsl.Memo {
	m.Shared = true
	return m.Kept()
}

// back returns the state of an object that the cache shows again. Now is the key's present state; nil for none. Unseen: the
// object was only missing for a while, so its state goes on. Machines that have gone through states of deletion in the
// meantime start over.
func (m *StoredState) back(now *StoredState, unseen bool) *StoredState {
	if unseen && (now == nil || now.UID != m.UID) {
		now = m
	}
	was, out := m.Open(), now.Open()
	if out.UID != was.UID && was.Troubles.Any() { // the log has their end when the object is reconciled
		out = newState(was.UID)
		out.Writes, out.Troubles = was.Writes, was.Troubles
	}
	for _, id := range slices.Sorted(maps.Keys(was.Done)) {
		if was.Done[id].Book == nil {
			continue
		}
		if out.UID != was.UID {
			out = newState(was.UID)
			out.Writes = was.Writes
		}
		out.Done, out.Rerun = was.Done, append(out.Rerun, id)
	}
	if out.UID == "" {
		return nil
	}
	return out.Stored()
}

// Gone notes that the object is gone, or that another object has its name, so that the log stops counting it as failing.
func (m *StoredState) Gone() {
	if m != nil && m.rare != nil {
		m.rare.Troubles.Gone()
	}
}

// CaughtUp reports whether caches show this operator's last writes to the object, its children and other objects.
func (m *ObjectState) CaughtUp(ctx context.Context, read inbox.Read) bool {
	return m.Writes.Shown() || m.Writes.FindLost(ctx, read)
}

// expecting adds writes to wait for: writes of other objects' reconciles, and own writes of earlier reconciles.
func (m ObjectState) expecting(writes, own []inbox.Write) ObjectState {
	m.Writes.AddAll(own)
	if len(writes) == 0 {
		return m
	}
	if m.UID == "" {
		m.UID = writes[len(writes)-1].UID
	}
	m.Writes.Expect(m.UID, writes)
	return m
}

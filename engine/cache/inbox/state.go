// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/breaker"
)

// state is all that is known of one key. There is one for each object.
type state[M any] struct {
	// uid identifies the newest object under the key. Came is true if it appeared or changed since the last reconcile
	// began. Fresh is as in Changes.
	uid         types.UID
	came, fresh bool
	// parked is true if the last reconcile was put off until the cache has caught up.
	parked bool
	// health is the health after the last finished reconcile; nil before the first.
	health *objectHealth
	memory *M
	// pending is nil if it would be empty, as for an object at rest.
	*pending[M]
}

// pending has the facts of a key that is not at rest.
type pending[M any] struct {
	Changes
	// changed are the children that have changed since the last reconcile, by UID.
	changed map[types.UID]news
	// expected are writes to the object by reconciles over other objects.
	expected []Write
	// gone are objects of this key that were deleted and not finalized yet.
	gone []*Tombstone[M]
	// echoes are this operator's own writes to children, by UID, whose events have not come yet. These events are not
	// changes.
	echoes map[types.UID]awaited
	// turn is the batch of the running reconcile; nil while none runs.
	turn *Batch[M]
	// phase is the progress of that reconcile. Late are the states of the object that came while the reconcile writes
	// it.
	phase phase
	late  []*cached.Object
	// left is the state in which the last reconcile left the object; nil if that is unknown, or if the caches have shown
	// it.
	left *left
	// waits are the UIDs of the objects that a parked key waits for.
	waits []types.UID
	// unfinished describes the failed reconciles since the last finished one.
	unfinished unfinished
	// aside is since when the key is put aside; zero if it is not. AsideFor is the reason. AsideLogged is true if the
	// log has it.
	aside       time.Time
	asideFor    shortage
	asideLogged bool
	// suspended is until when the object is held back because it loops; zero if it is not.
	suspended time.Time
	// looping is since when the object loops again and again. LoopSeen is when that was last found. Both are zero if it
	// does not loop.
	looping, loopSeen time.Time
}

// news has the events of a child since the last reconcile.
type news struct {
	// last is the child in its last event; nil if it is gone.
	last *cached.Object
	// several is true if there was more than one event, so not all of them are the echo of one write.
	several bool
}

// unfinished describes failed reconciles over an object, one after the other.
type unfinished struct {
	count int
	since time.Time
	// err is the error of the last one.
	err string
}

// wokenMost bounds the recorded versions of the objects that woke a key. Further ones are dropped.
const wokenMost = 32

// woken records versions of other objects that wake the key, the last version of each object.
func (s *state[M]) woken(all ...breaker.Version) {
	for _, v := range all {
		i := slices.IndexFunc(s.Woken, func(known breaker.Version) bool { return known.UID == v.UID })
		switch {
		case v.UID == "" || v.UID == s.uid:
		case i >= 0:
			s.Woken[i] = v
		case len(s.Woken) < wokenMost:
			s.Woken = append(s.Woken, v)
		}
	}
}

// gather adds the changed children and related objects to the versions that wake the key.
func (s *state[M]) gather() {
	for uid, child := range s.changed {
		v := breaker.Version{UID: uid}
		if child.last != nil {
			v.Text = child.last.GetResourceVersion()
		}
		s.woken(v)
	}
	if s.Related == nil {
		return
	}
	for _, c := range s.Related.Changes {
		v := breaker.Version{UID: c.uid}
		if c.After != nil {
			v.Text = c.After.GetResourceVersion()
		}
		s.woken(v)
	}
}

// wake allocates pending.
func (s *state[M]) wake() {
	if s.pending == nil {
		s.pending = &pending[M]{}
	}
}

// rest frees pending if it is empty.
func (s *state[M]) rest() {
	if len(s.changed) == 0 {
		s.changed = nil
	}
	if len(s.echoes) == 0 {
		s.echoes = nil
	}
	if reflect.ValueOf(s.pending).Elem().IsZero() {
		s.pending = nil
	}
}

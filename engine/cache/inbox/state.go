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

// state is what is known of one key. There is one for each object.
type state[M any] struct {
	// uid identifies the newest object under the key; came: it appeared or changed since the last reconcile began. Fresh is as in Changes.
	uid         types.UID
	came, fresh bool
	// parked: the last reconcile was put off until the cache has caught up.
	parked bool
	// stand is how the last reconcile that was finished left the object, nil before the first.
	stand  *stand
	memory *M
	// pending is nil while there is nothing of it, as for an object at rest.
	*pending[M]
}

// pending has the facts of a key that is not at rest.
type pending[M any] struct {
	Changes
	// changed are the children that have changed since the last reconcile, by UID.
	changed map[types.UID]news
	// expected are writes to the object by reconciles over others.
	expected []Write
	// gone are objects of this key that were deleted and not finalized yet.
	gone []*Tombstone[M]
	// echoes are this operator's own writes to children, by UID, whose events are yet to come: these are no news.
	echoes map[types.UID]awaited
	// turn is the batch of the running reconcile; nil while none runs.
	turn *Batch[M]
	// phase is how far that reconcile is. Late are the states of the object that came while it writes it.
	phase phase
	late  []*cached.Object
	// left is how the last reconcile left the object; nil where that is not known, and when caches have shown it.
	left *left
	// waits are the UIDs under which it waits while it is parked.
	waits []types.UID
	// unfinished counts reconciles that could not be finished, since one was.
	unfinished unfinished
	// aside is since when it is put aside; zero while it is not. asideFor says what it waits for, and asideLogged that the log has a
	// line about it.
	aside       time.Time
	asideFor    shortage
	asideLogged bool
	// suspended is until when the object is held back because it loops, zero when it is not.
	suspended time.Time
	// looping is since when it loops again and again, and loopSeen when that was found last; both zero while it does not.
	looping, loopSeen time.Time
}

// news is what came of a child since the last reconcile.
type news struct {
	// last is the child as its last event shows it; nil where it is gone.
	last *cached.Object
	// several: there was more than one event, so not all of them are the echo of one write.
	several bool
}

// unfinished are passes over an object, one after the other, that could not be finished.
type unfinished struct {
	count int
	since time.Time
	// err is what the last one ended with.
	err string
}

// wokenMost bounds the noted versions of the objects that woke a key. All further ones are left out.
const wokenMost = 32

// woken notes versions of other objects that wake the key, the last one of each object.
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

// gather notes the children and related objects among what wakes the key.
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

// wake makes room for what is pending.
func (s *state[M]) wake() {
	if s.pending == nil {
		s.pending = &pending[M]{}
	}
}

// rest gives the room back when nothing is.
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

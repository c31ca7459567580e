// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package breaker

import (
	"math/bits"

	"k8s.io/apimachinery/pkg/types"
)

// turn counts the visits of a cascade to an object. An event from outside begins a cascade: it wakes a reconcile, the
// writes of this reconcile wake other reconciles, and so on. The cascade visits an object when the object writes because
// another one of the cascade woke it. In a ring, the visits to each object never end. In a hub with many related
// objects, the hub has many visits, but each of the others has only a few.
type turn struct {
	// cascade is the number of the step that began it, zero for no cascade.
	cascade uint64
	visits  uint32
}

// place has the turn of an object, at an index that is the hash of its UID. If two objects of a cascade share a
// place, it counts the visits to both; so the trail also detects a ring of more objects than it has places.
type place struct {
	object uint64
	turn
	// last is the number of the last step that was counted.
	last uint64
}

// placeLocked returns the place of an object. The lock is held.
func (t *Trail) placeLocked(uid types.UID) (at *place, object uint64) {
	object = t.hash(Version{UID: uid})
	return &t.places[object%kept], object
}

// joinLocked returns the turn of a step, and computes it at the first call. The lock is held.
func (t *Trail) joinLocked(s *step) turn {
	if s.turn.cascade == 0 {
		s.turn = turn{s.number, 1} // it is set already when two steps wait for each other's responses
		s.turn = t.turnLocked(s)
		if at, object := t.placeLocked(s.uid); at.last <= s.number {
			*at = place{object, s.turn, s.number}
		}
	}
	return s.turn
}

// turnLocked computes the turn of a step. The step joins the newest cascade among that of its object and those of
// the steps that woke it. It begins a cascade if somebody else has changed the object, or no step woke it. The lock
// is held.
func (t *Trail) turnLocked(s *step) turn {
	begun, joined, visited := turn{s.number, 1}, turn{visits: 1}, false
	for _, v := range s.woken {
		by := t.byLocked(v)
		if by == nil && v.UID == s.uid {
			return begun
		}
		if by == nil || by == s {
			continue
		}
		from := t.joinLocked(by)
		joined.cascade = max(joined.cascade, from.cascade)
		visited = visited || by.uid != s.uid && by.number > s.had.last
		if v.UID == s.uid && t.madeLocked(v) {
			joined.visits = from.visits
		}
	}
	had := s.had
	_, object := t.placeLocked(s.uid)
	switch {
	case joined.cascade == 0:
		return begun
	case had.cascade < joined.cascade, had.cascade > joined.cascade && had.object != object:
		return joined
	case visited:
		had.visits++
	}
	return had.turn
}

// again is how many visits an object of a ring has at least.
const again = 2

// circlesLocked reports whether an object is in a ring with the step that woke it. Had is the object's turn before
// that. A related object of a hub may write several times until it rests, so one or two visits to it do not
// indicate a ring if the hub has hundreds: each doubling of the visits to the hub requires one more visit to the
// other object. The lock is held.
func (t *Trail) circlesLocked(by *step, had turn) bool {
	from := t.joinLocked(by)
	return from.cascade == had.cascade && had.visits >= again && from.visits >= again && bits.Len32(had.visits) <= int(from.visits)
}

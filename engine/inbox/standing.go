// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/handwerk-dev/handwerk/engine/ops"
)

// Finished notes how a pass left its object.
func (b *Box[M]) Finished(key Key, how ops.Standing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stateLocked(key)
	s.standing, s.failures = how, 0
}

// Failed counts a pass that could not be finished, and returns how many were so before it, in a row, with what is
// remembered of the key's object. Where nothing is, that is made.
func (b *Box[M]) Failed(key Key, remember func(types.UID) *M) (before int, memory *M) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stateLocked(key)
	if s.memory == nil {
		s.memory = remember(s.uid)
	}
	s.failures++
	return s.failures - 1, s.memory
}

// Suspend notes until when an object is held back because it loops; zero when it is not.
func (b *Box[M]) Suspend(key Key, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stateLocked(key).suspended = until
}

// Held counts the keys that wait for the cache, and the objects that are held back because they loop.
func (b *Box[M]) Held() (parked, suspended int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, s := range b.keys {
		if s.parked {
			parked++
		}
		if s.pending != nil && s.suspended.After(now) {
			suspended++
		}
	}
	return parked, suspended
}

// Standings counts the objects that are known by how they stand.
func (b *Box[M]) Standings() map[ops.Standing]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[ops.Standing]int{}
	for _, s := range b.keys {
		switch {
		case s.pending != nil && s.failures > 0 && s.standing != ops.Held:
			out[ops.Failing]++
		case s.standing == "":
			// its first pass is still to come
		case s.parked && s.standing == ops.Ready:
			out[ops.Waits]++
		default:
			out[s.standing]++
		}
	}
	return out
}

// Awaited is how many objects parked keys wait for.
func (b *Box[M]) Awaited() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

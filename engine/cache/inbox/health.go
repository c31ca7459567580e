// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/handwerk-dev/handwerk/engine/cache/queue"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
)

// objectHealth is the health in which a reconcile left an object.
type objectHealth struct {
	how ops.Health
	// since is when the health began.
	since time.Time
	open  []open
}

// SetHealth records the health in which a reconcile left its object.
func (b *Inbox[M]) SetHealth(key Key, how ops.ObjectHealth) {
	defer b.lines.flush()
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stateLocked(key)
	b.setHealthLocked(key, s, how)
}

// setHealthLocked records the health of an object; an empty one is for an object that no reconcile has seen. The lock is
// held.
func (b *Inbox[M]) setHealthLocked(key Key, s *state[M], how ops.ObjectHealth) {
	if s.pending != nil {
		s.unfinished = unfinished{}
	}
	before := s.health
	switch {
	case len(how.Open) > 0:
		s.health = b.openLocked(key, before, how)
	case how.Health == ops.Ready:
		s.health = b.ready
	case how.Health == "":
		s.health = nil
	default:
		s.health = &objectHealth{how: how.Health, since: time.Now()}
	}
	if before == nil || before == s.health {
		return
	}
	if s.health != nil && s.health != b.ready && s.health.how == before.how {
		s.health.since = before.since
	}
	b.endedLocked(key, before, s.health)
}

// Suspend records until when an object is held back because it loops; zero if it is not. It reports whether the loop
// goes on, so that the log has it already. An object that keeps looping is held back again after each probe.
func (b *Inbox[M]) Suspend(key Key, until time.Time) (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stateLocked(key)
	if s.suspended = until; until.IsZero() {
		return false
	}
	again = !s.looping.IsZero()
	if s.loopSeen = time.Now(); !again {
		s.looping = s.loopSeen
	}
	b.watchLocked(key, s.loopSeen.Add(loopOver))
	return again
}

// CountHeld counts the keys that wait for the cache, and the objects that are held back because they loop.
func (b *Inbox[M]) CountHeld() (parked, suspended int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.keys {
		if s.parked {
			parked++
		}
		if s.isSuspended() {
			suspended++
		}
	}
	return parked, suspended
}

// isSuspended reports whether the object is held back because it loops.
func (s *state[M]) isSuspended() bool { return s.pending != nil && s.suspended.After(time.Now()) }

// Queue returns the counts of the queue, which is empty while this process does not lead.
func (b *Inbox[M]) Queue() queue.Stats {
	b.mu.Lock()
	q := b.queue
	b.mu.Unlock()
	if q == nil {
		return queue.Stats{}
	}
	return q.Stats()
}

// currentHealth returns the current health of an object, and since when it lasts; empty before its first reconcile.
func (s *state[M]) currentHealth() (how ops.Health, since time.Time) {
	if s.health != nil {
		how, since = s.health.how, s.health.since
	}
	switch {
	case s.pending == nil || how == ops.Held:
	case s.unfinished.count > 0:
		return ops.Failing, s.unfinished.since
	case s.isSuspended() && (how == ops.Ready || how == ops.Waits):
		return ops.Failing, s.looping
	case (s.parked || s.asideFor == memoryShort) && how == ops.Ready:
		return ops.Waits, s.aside
	}
	return how, since
}

// reasons returns why an object with this health is not ready.
func (s *state[M]) reasons(how ops.Health) (out []ops.Open) {
	if s.pending != nil && s.unfinished.count > 0 {
		out = append(out, ops.Open{Health: ops.Failing, Reason: "reconcile could not be finished: " + s.unfinished.err})
	}
	if s.health != nil {
		for _, o := range s.health.open {
			out = append(out, o.Open)
		}
	}
	if s.isSuspended() {
		out = append(out, ops.Open{Health: ops.Failing, Reason: why.BreakerOpen.Brief("")})
	}
	if how == ops.Waits && len(out) == 0 {
		reason := cacheBehind
		if s.pending != nil && s.asideFor != 0 {
			reason = s.asideFor
		}
		out = append(out, ops.Open{Health: ops.Waits, Reason: reason.String()})
	}
	return out
}

// reasonMost is the largest length of one error in a list of errors, in bytes.
const reasonMost = 200

func short(text string) string {
	if len(text) <= reasonMost {
		return text
	}
	return strings.ToValidUTF8(text[:reasonMost], "") + "…"
}

// CountHealth counts the known objects by their health. Outside of a term it counts none, because another
// process may lead.
func (b *Inbox[M]) CountHealth() map[ops.Health]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[ops.Health]int{}
	if b.queue == nil {
		return out
	}
	for _, s := range b.keys {
		if how, _ := s.currentHealth(); how != "" {
			out[how]++
		}
	}
	return out
}

// Unready returns the objects that are not ready: for each health the oldest ones, at most so many. Outside of a term
// there are none.
func (b *Inbox[M]) Unready(most int) (out []ops.Unready) {
	for _, how := range ops.Healths() {
		if how != ops.Ready {
			out = append(out, ops.Unready{Health: how})
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.queue == nil {
		return nil
	}
	for key, s := range b.keys {
		how, since := s.currentHealth()
		if how == ops.Ready || how == "" {
			continue
		}
		of := &out[slices.IndexFunc(out, func(of ops.Unready) bool { return of.Health == how })]
		of.Count++
		one := ops.UnreadyObject{Object: key.String(), Since: since}
		at, _ := slices.BinarySearchFunc(of.Oldest, one, func(a, b ops.UnreadyObject) int {
			return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Object, b.Object))
		})
		if at >= most {
			continue
		}
		one.Open = s.reasons(how)
		of.Oldest = slices.Insert(of.Oldest, at, one)
		of.Oldest = of.Oldest[:min(len(of.Oldest), most)]
	}
	return slices.DeleteFunc(out, func(of ops.Unready) bool { return of.Count == 0 })
}

// Failing returns the keys without an object, such as those of schedules, whose handlers fail. Outside of a term there
// are none.
func (b *Inbox[M]) Failing() map[Key]ops.UnreadyObject {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := map[Key]ops.UnreadyObject{}
	for key, s := range b.keys {
		if b.queue == nil || s.health == nil || s.health.how != "" {
			continue
		}
		for _, o := range s.health.open {
			if o.Health == ops.Failing {
				out[key] = ops.UnreadyObject{Object: key.String(), Since: o.since, Open: []ops.Open{o.Open}}
			}
		}
	}
	return out
}

// CountAwaited returns how many objects parked keys wait for.
func (b *Inbox[M]) CountAwaited() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package attempt

import (
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// textsMost bounds the texts that are remembered for one resource. A failure with another text is logged in full.
	textsMost = 100
	// textKept is for how long a text is remembered at least.
	textKept = 10 * time.Minute
	// sumFirst is when the first summary of a text comes. The pauses between summaries double up to sumPauseMost.
	sumFirst     = time.Minute
	sumPauseMost = time.Hour
	// sumSoonest is the shortest time between two checks for summaries that are due.
	sumSoonest = time.Second
)

// Texts bounds the log of failures that many objects share. The first object that fails with a text has the whole text
// in its line. Other objects have a short line that names the first. Repeated failures have no line; summaries count
// them.
//
// Texts of one handler are the same if they differ only in the names of their objects. Outside of a term of leadership,
// and beyond textsMost, each failure has its line.
type Texts struct {
	log logr.Logger

	// The lock is held while a line is written: a line that names another one comes after it.
	mu sync.Mutex
	// known is nil outside of a term.
	known map[topic]*text
	// timer checks for summaries at checkAt; nil if none will be due.
	timer   *time.Timer
	checkAt time.Time
}

// text is the state of a topic.
type text struct {
	in    *Texts
	topic topic
	// full is the object that failed last with the whole text in its line, at a time.
	full speaker
	at   time.Time
	// failing counts the voices that fail with it.
	failing int
	// until is when the text may be forgotten unless somebody fails with it before.
	until time.Time
	// The window has the counts for the next summary. It ends at due, after the pause.
	window
	due   time.Time
	pause time.Duration
}

// Voice is the text with which a handler fails for an object. The zero value does not fail.
type Voice struct {
	of *text
	// window is the window in which it was counted last.
	window int
}

// NewTexts returns texts outside of a term. The log of the resource gets the summaries.
func NewTexts(log logr.Logger) *Texts { return &Texts{log: log} }

// Begin begins a term. No text is known yet.
func (t *Texts) Begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = map[topic]*text{}
}

// End ends the term, and with it the summaries.
func (t *Texts) End() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known = nil
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// Say writes a failure to the log, or counts it. The voice is that of the handler and the object, nil for a failure that
// does not last.
func (t *Texts) Say(f Failure, v *Voice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v == nil {
		v = &Voice{}
		defer v.leaveLocked()
	}
	now := time.Now()
	about := t.findLocked(f, now)
	recent := about != nil && now.Sub(about.at) <= sumPauseMost
	again := f.Known || about != nil && v.of == about
	if about.joinLocked(v); about != nil {
		about.countLocked(f, v, now)
	}
	switch {
	case f.Final == "" && again && (recent || about == nil):
		f.LogVerbose()
		if about != nil {
			about.quiet = true
		}
	case recent && about.full != f.speaker():
		f.short(about.full)
	default:
		f.whole()
		if about != nil {
			about.full, about.at = f.speaker(), now
		}
	}
}

// findLocked returns the state of a failure's text; nil if there is no room for it. The lock is held.
func (t *Texts) findLocked(f Failure, now time.Time) *text {
	if t.known == nil {
		return nil
	}
	key := f.topic()
	if found := t.known[key]; found != nil {
		return found
	}
	if len(t.known) >= textsMost {
		for _, one := range t.known {
			if one.failing == 0 {
				t.forgetLocked(one)
			}
		}
	}
	if len(t.known) >= textsMost {
		return nil
	}
	found := &text{in: t, topic: key, window: window{number: 1, began: now}, due: now.Add(sumFirst), pause: sumFirst}
	t.known[key] = found
	t.checkLocked(found.due)
	return found
}

// joinLocked makes a voice fail with the text; nil means an unknown text. The lock is held.
func (about *text) joinLocked(v *Voice) {
	if v.of == about {
		return
	}
	v.leaveLocked()
	if v.of = about; about != nil {
		about.failing++
	}
}

// leaveLocked removes a voice from its text. The lock is held.
func (v *Voice) leaveLocked() {
	if v.of != nil {
		v.of.failing--
		v.uncountLocked()
	}
	v.of = nil
}

// Over notes that the handler no longer fails for the object. If it was the last object, its text is forgotten.
func (v *Voice) Over() {
	about := v.of
	if about == nil {
		return
	}
	about.in.mu.Lock()
	defer about.in.mu.Unlock()
	if v.leaveLocked(); about.failing == 0 {
		about.in.forgetLocked(about)
	}
}

// Rest notes that the handler is not tried again for now, for example because its filters exclude the object. Summaries
// leave it out.
func (v *Voice) Rest() {
	if about := v.of; about != nil {
		about.in.mu.Lock()
		defer about.in.mu.Unlock()
		v.uncountLocked()
	}
}

// forgetLocked forgets a text. Voices may still have it. The lock is held.
func (t *Texts) forgetLocked(about *text) {
	if t.known[about.topic] == about {
		delete(t.known, about.topic)
	}
	about.window = window{}
}

// countLocked counts a failure in the window, unless it is final. The lock is held.
func (about *text) countLocked(f Failure, v *Voice, now time.Time) {
	for _, until := range []time.Time{f.Due, now.Add(textKept)} {
		if until.After(about.until) {
			about.until = until
		}
	}
	if f.Final != "" {
		v.uncountLocked()
		return
	}
	about.add(f, v, v.window != about.number)
	v.window = about.number
}

// uncountLocked removes a voice from the window. The lock is held.
func (v *Voice) uncountLocked() {
	if v.window == v.of.number {
		v.of.remove(v)
	}
	v.window = 0
}

// checkLocked schedules a check for summaries at this time at the latest. The lock is held.
func (t *Texts) checkLocked(at time.Time) {
	switch {
	case t.timer == nil:
		t.timer = time.AfterFunc(time.Until(at), t.check)
	case at.Before(t.checkAt):
		t.timer.Reset(time.Until(at))
	default:
		return
	}
	t.checkAt = at
}

// check ends the windows that are over, and forgets texts with which no object has failed for long.
func (t *Texts) check() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer == nil {
		return // the term is over
	}
	t.timer = nil
	now, next := time.Now(), time.Time{}
	for _, about := range t.sortedLocked() {
		if !about.due.After(now) {
			t.endLocked(about, now)
		}
		if t.known[about.topic] == about && (next.IsZero() || about.due.Before(next)) {
			next = about.due
		}
	}
	if soonest := now.Add(sumSoonest); !next.IsZero() {
		if next.Before(soonest) {
			next = soonest
		}
		t.checkLocked(next)
	}
}

// endLocked ends the window of a text, with a summary if some of its failures had no line. The lock is held.
func (t *Texts) endLocked(about *text, now time.Time) {
	if about.failed == 0 && !about.until.After(now) {
		t.forgetLocked(about)
		return
	}
	if about.quiet && about.objects > 0 {
		about.summary(t.log, about.topic, now)
		about.full, about.at = about.speaker, now
	}
	about.window = window{number: about.number + 1, began: now}
	about.pause = min(2*about.pause, sumPauseMost)
	about.due = now.Add(about.pause)
}

// sortedLocked returns the texts in the order in which they are due. The lock is held.
func (t *Texts) sortedLocked() []*text {
	out := make([]*text, 0, len(t.known))
	for _, about := range t.known {
		out = append(out, about)
	}
	slices.SortFunc(out, func(a, b *text) int { return a.due.Compare(b.due) })
	return out
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// spell is a time for which a feed is degraded. It begins with a line in the log and ends with one, unless
// its reason is said already; what comes in between is counted, and told when it is of another kind.
type spell struct {
	begun time.Time
	// now is how the feed is since the last step.
	now hindrance
	// before is how often the feed's sources had failed when it began.
	before int
	// told: a line says that it began.
	told bool
}

// fail notes an error for which the feed does not run. One that says that the feed is being stopped is none.
func (f *feed) fail(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	now := faulty(err)
	now.silent = now.silent || f.covers(err)
	f.become(now)
}

// become notes how the feed is, and says when it begins to be degraded and when it is well again.
func (f *feed) become(now hindrance) {
	failures := f.failures()
	f.mu.Lock()
	changed := f.phase != now.phase || f.message != now.text
	f.phase, f.message = now.phase, now.text
	was := f.spell
	changed = changed || was != nil && was.now.silent && !now.silent
	f.spell = was.next(now, failures)
	if now.phase != phaseStarting {
		select {
		case <-f.settled:
		default:
			close(f.settled)
		}
	}
	f.mu.Unlock()
	if changed && now.phase != phaseStarting {
		f.say(now, was, failures)
	}
}

// next is the spell once the feed is otherwise; a nil one is none.
func (s *spell) next(now hindrance, failures int) *spell {
	switch {
	case now.phase == phaseRunning:
		return nil
	case now.phase == phaseStarting:
		return s
	case s == nil:
		return &spell{time.Now(), now, max(0, failures-1), !now.silent}
	}
	return &spell{s.begun, now, s.before, s.told || !now.silent}
}

// implies reports whether what was said of the feed says also how it is now.
func (s *spell) implies(now hindrance) bool {
	if s.now.phase == phaseMissing && now.unserved {
		return true // as of a CRD that comes back
	}
	return s.now.phase == now.phase && (now.phase == phaseFaulty || s.now.text == now.text)
}

// say says how the feed is, when that is news after a spell.
func (f *feed) say(now hindrance, was *spell, failures int) {
	told := was != nil && was.told
	switch {
	case now.phase == phaseRunning && !told:
		f.log.V(1).Info("resource is watched")
	case now.phase == phaseRunning:
		values := []any{"lasted", time.Since(was.begun).Round(time.Second).String()}
		if failures > was.before { // it may not even have been tried
			values = append(values, "failed", failures-was.before)
		}
		f.log.Info("resource is watched again", values...)
	case now.silent, told && was.implies(now):
		f.log.V(1).Info("resource is degraded, which is said already", "state", string(now.phase), "reason", now.text)
	default:
		f.log.Info("resource is degraded", dsl.LogWarning, true, "state", string(now.phase), "reason", now.text)
	}
}

// failures counts the failures of the feed's sources.
func (f *feed) failures() (n int) {
	for _, h := range f.all() {
		n += h.State().Failures
	}
	return n
}

// health is how a feed is, for people.
type health struct {
	phase   phase
	message string
	// warning tells what is wrong in some namespaces while the feed runs.
	warning string
}

func (f *feed) health() health {
	f.mu.Lock()
	defer f.mu.Unlock()
	return health{f.phase, f.message, f.warning}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
)

// spell is a time for which a feed is degraded. It begins with a line in the log and ends with one; what
// comes in between is counted, and told when it is of another kind.
type spell struct {
	begun time.Time
	// as is the phase that was told last, and why in what words.
	as  phase
	why string
	// before is how often the feed's sources had failed when it began.
	before int
}

// become notes how the feed is, and says when it begins to be degraded and when it is well again.
func (f *feed) become(p phase, message string) {
	failures := f.failures()
	f.mu.Lock()
	changed := f.phase != p || f.message != message
	f.phase, f.message = p, message
	was := f.spell
	f.spell = was.next(p, message, failures)
	if p != phaseStarting {
		select {
		case <-f.settled:
		default:
			close(f.settled)
		}
	}
	f.mu.Unlock()
	if changed && p != phaseStarting {
		f.say(p, message, was, failures)
	}
}

// next is the spell once the feed is in a phase; a nil one is none.
func (s *spell) next(p phase, message string, failures int) *spell {
	switch {
	case p == phaseRunning:
		return nil
	case p == phaseStarting:
		return s
	case s == nil:
		return &spell{time.Now(), p, message, max(0, failures-1)}
	}
	return &spell{s.begun, p, message, s.before}
}

// say says how the feed is, when that is news after a spell.
func (f *feed) say(p phase, message string, was *spell, failures int) {
	switch {
	case p == phaseRunning && was == nil:
		f.log.V(1).Info("resource is watched")
	case p == phaseRunning:
		values := []any{"lasted", time.Since(was.begun).Round(time.Second).String()}
		if failures > was.before { // it may not even have been tried
			values = append(values, "failed", failures-was.before)
		}
		f.log.Info("resource is watched again", values...)
	case was != nil && was.as == p && (p == phaseFaulty || was.why == message):
		f.log.V(1).Info("resource is degraded in another way", "reason", message)
	default:
		f.log.Info("resource is degraded", dsl.LogWarning, true, "state", string(p), "reason", message)
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

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package server

import "time"

// compactEvery is how often a real server drops old versions. It keeps those since the time before.
const compactEvery = 5 * time.Minute

// compaction drops old versions.
type compaction struct {
	// at is when versions were dropped last: those before done. Those before next are dropped the next time.
	at         time.Time
	done, next int64
}

// compacted returns the oldest version as of which objects can be listed. Nothing has to run for it: it drops what is due. That
// is by the clock of the machine, as clients come back to their versions by theirs. A server that remembers all changes keeps
// all versions.
func (s *Server) compacted() int64 {
	if s.history == 0 {
		return 0
	}
	c := &s.compaction
	switch now := s.clock.Now(); {
	case c.at.IsZero():
		c.at = now
	case now.Sub(c.at) >= 2*compactEvery: // nothing was written meanwhile
		*c = compaction{at: now, done: s.version, next: s.version}
	case now.Sub(c.at) >= compactEvery:
		*c = compaction{at: now, done: c.next, next: s.version}
	}
	return c.done
}

// Compact drops all earlier versions at once, and the changes that clients could catch up with. Open watches go on.
func (s *Server) Compact() {
	s.each(nil, func(t *table) { t.objects.Forget(s.version) })
}

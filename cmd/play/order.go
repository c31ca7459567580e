// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package play

import "time"

// slot is the place of a line among the others.
type slot struct {
	line
	at    time.Time
	ready bool
}

// begin takes the place of a line about something that begins. The returned function has to be called with the line when
// it ends; a line without words is not written. Others see a write before its sender has the answer, so that what follows from
// it could have its line first.
func (l *lines) begin() (end func(line)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &slot{at: l.now()}
	l.slots = append(l.slots, s)
	return func(n line) {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.line, s.ready = n, true
		l.flush()
	}
}

// write writes a line.
func (l *lines) write(n line) { l.begin()(n) }

// flush writes the lines that wait for no other one.
func (l *lines) flush() {
	var waiting []*slot
	for _, s := range l.slots {
		switch {
		case !s.ready, l.ordered && len(waiting) > 0:
			waiting = append(waiting, s)
		case s.what != "":
			l.print(s.line, s.at)
		}
	}
	l.slots = waiting
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestPatience holds when a feed that is not well looks again.
func TestPatience(t *testing.T) {
	type step struct {
		passes               time.Duration
		again, running, news bool
		// wait is how long it is until the next look at most, and 20 % less at least; zero for none.
		wait time.Duration
	}
	tests := map[string][]step{
		"one that runs does not look again":     {{0, false, true, false, 0}},
		"waits double up to ten seconds":        {{0, true, false, false, time.Second}, {1, true, false, false, 2 * time.Second}, {2, true, false, false, 4 * time.Second}, {4, true, false, false, 8 * time.Second}, {8, true, false, false, 10 * time.Second}, {10, true, false, false, 10 * time.Second}},
		"a moment of running begins none again": {{0, true, false, false, time.Second}, {1, true, true, false, 2 * time.Second}, {2, true, false, false, 4 * time.Second}},
		"half a minute of it does":              {{0, true, false, false, time.Second}, {1, false, true, false, 0}, {30, true, false, false, time.Second}},
		"so does what it may have waited for":   {{0, true, false, false, time.Second}, {1, true, false, false, 2 * time.Second}, {0, true, false, true, time.Second}},
	}
	for title, steps := range tests {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := patience{}
				for i, s := range steps {
					<-time.After(s.passes * time.Second)
					begun, next := time.Now(), p.wait(s.again, s.running, s.news)
					if next == nil || s.wait == 0 {
						if next != nil || s.wait != 0 {
							t.Errorf("step %d: it looks again: %v", i, next != nil)
						}
						continue
					}
					<-next
					if took := time.Since(begun); took > s.wait || took < s.wait*8/10 {
						t.Errorf("step %d: it waits %s, want %s", i, took, s.wait)
					}
				}
			})
		})
	}
}

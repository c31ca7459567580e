// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"sync"
	"time"
)

// bookmarks knows how often the server sends bookmarks to one source. The zero value is ready to use.
type bookmarks struct {
	mu sync.Mutex
	// beat is the longest time between two bookmarks so far; zero before the second.
	beat time.Duration
	// expected is true if the server has ended a streamed list with a bookmark, so that others should come. Distrusted
	// is true if none came, on two watches in a row.
	expected, distrusted bool
}

// beats records the time between two bookmarks. It returns the longest one so far, or the usual one if bookmarks are
// expected; zero if they are not.
func (b *bookmarks) beats(last time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beat = max(b.beat, last)
	if b.beat == 0 && b.expected && !b.distrusted {
		return usualBeat
	}
	return b.beat
}

// came reports whether the server has sent bookmarks other than the ends of lists.
func (b *bookmarks) came() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beat > 0
}

// expect records that the server sends bookmarks: it has ended a streamed list with one.
func (b *bookmarks) expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = true
}

// distrust records that two watches in a row brought nothing. It reports whether that is no fault, because the server
// has never sent the bookmarks that were expected of it. They are not expected any longer.
func (b *bookmarks) distrust() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.distrusted = true
	return b.beat == 0
}

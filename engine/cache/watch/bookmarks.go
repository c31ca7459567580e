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
	// beat is the longest time between two so far, zero before there were two.
	beat time.Duration
	// expected: the server has ended a streamed list with one, so others are to come. Distrusted: none came, on two
	// watches in a row.
	expected, distrusted bool
}

// beats notes the time between two bookmarks, and returns the longest one so far, or the usual one where bookmarks are
// expected. It is zero where none are.
func (b *bookmarks) beats(last time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.beat = max(b.beat, last)
	if b.beat == 0 && b.expected && !b.distrusted {
		return usualBeat
	}
	return b.beat
}

// came reports whether the server has sent bookmarks besides those that end lists.
func (b *bookmarks) came() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beat > 0
}

// expect notes that the server sends bookmarks: it has ended a streamed list with one.
func (b *bookmarks) expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = true
}

// distrust notes that two watches in a row brought nothing. It reports whether that is no fault, because the server has
// never sent the bookmarks that were expected of it: they are not expected any more.
func (b *bookmarks) distrust() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.distrusted = true
	return b.beat == 0
}

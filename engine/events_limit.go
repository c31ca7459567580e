// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

const (
	// eventsBurst and eventsRefill limit the Events about one object as client-go's tools/record limits
	// them (defaultSpamBurst and defaultSpamQPS of its EventSourceObjectSpamFilter). tools/events, which
	// is used here, has no limit.
	eventsBurst  = 25
	eventsRefill = 5 * time.Minute
	// eventsCounted is how long client-go goes on counting an Event after it was last repeated
	// (finishTime of tools/events). Repeating it meanwhile sends next to nothing.
	eventsCounted = 6 * time.Minute
)

// subject is what has a bucket: an object, by its UID, and who reports about it. The engine's Events,
// as of a deletion that is held, are not crowded out by those of a chatty handler.
type subject struct {
	object string
	by     ops.Reporter
}

// sort is what makes two Events about an object the same one for client-go, which counts them then.
type sort struct {
	kind           dsl.EventType
	action, reason string
}

// eventLimit keeps a bucket for each subject. Buckets that are full again are forgotten, so it is as large
// as the number of objects about which something was reported lately.
type eventLimit struct {
	mu      sync.Mutex
	buckets map[subject]*bucket
	swept   time.Time
}

// bucket is what a subject may report still.
type bucket struct {
	tokens float64
	filled time.Time
	// counted are the Events that client-go counts now, with the time of their last report.
	counted map[sort]time.Time
	// spilled: an Event was dropped since the bucket was full.
	spilled bool
}

// admit reports whether an Event may be sent; first tells, of one that may not, that it is the first of
// its flood, which goes on until the bucket is full again.
func (l *eventLimit) admit(of subject, what sort, now time.Time) (admitted, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	b, found := l.buckets[of]
	if !found {
		b = &bucket{tokens: eventsBurst, filled: now, counted: map[sort]time.Time{}}
		l.buckets[of] = b
	}
	b.refill(now)
	if _, counted := b.counted[what]; !counted {
		if b.tokens < 1 {
			first = !b.spilled
			b.spilled = true
			return false, first
		}
		b.tokens--
	}
	b.counted[what] = now
	return true, false
}

// refill brings the bucket to the present.
func (b *bucket) refill(now time.Time) {
	b.tokens = min(eventsBurst, b.tokens+float64(now.Sub(b.filled))/float64(eventsRefill))
	b.filled, b.spilled = now, b.spilled && b.tokens < eventsBurst
	for what, last := range b.counted {
		if now.Sub(last) >= eventsCounted {
			delete(b.counted, what)
		}
	}
}

// sweep forgets buckets that say no more than new ones would, now and then.
func (l *eventLimit) sweep(now time.Time) {
	if l.buckets == nil {
		l.buckets, l.swept = map[subject]*bucket{}, now
	}
	if now.Sub(l.swept) < eventsRefill {
		return
	}
	l.swept = now
	for of, b := range l.buckets {
		if b.refill(now); b.tokens >= eventsBurst && len(b.counted) == 0 {
			delete(l.buckets, of)
		}
	}
}

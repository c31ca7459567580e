// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package events

import (
	"sync"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/observe/ops"
)

const (
	// burst and refill limit the Events about one object as client-go's tools/record limits
	// them (defaultSpamBurst and defaultSpamQPS of its EventSourceObjectSpamFilter). tools/events, which
	// is used here, has no limit.
	burst  = 25
	refill = 5 * time.Minute
	// counted is how long client-go goes on counting an Event after it was last repeated
	// (finishTime of tools/events). Repeating it meanwhile sends next to nothing.
	counted = 6 * time.Minute
)

// subject is what has a bucket: an object, by its UID, and who reports about it. The engine's Events,
// as of a deletion that is held, are not crowded out by those of a chatty handler.
type subject struct {
	object string
	by     ops.Reporter
}

// sameness is what makes two Events about an object the same one for client-go, which counts them then.
type sameness struct {
	kind           dsl.EventType
	action, reason string
}

// limit keeps a bucket for each subject. Buckets that are full again are forgotten, so it is as large
// as the number of objects about which something was reported lately.
type limit struct {
	mu      sync.Mutex
	buckets map[subject]*bucket
	swept   time.Time
}

// bucket is what a subject may report still.
type bucket struct {
	tokens float64
	filled time.Time
	// counted are the Events that client-go counts now, with the time of their last report.
	counted map[sameness]time.Time
	// spilled: an Event was dropped since the bucket was full.
	spilled bool
}

// admit reports whether an Event may be sent. First is true for the first dropped Event since the bucket was last full.
func (l *limit) admit(of subject, what sameness, now time.Time) (admitted, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removeOld(now)
	b, found := l.buckets[of]
	if !found {
		b = &bucket{tokens: burst, filled: now, counted: map[sameness]time.Time{}}
		l.buckets[of] = b
	}
	b.refill(now)
	if _, is := b.counted[what]; !is {
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
	b.tokens = min(burst, b.tokens+float64(now.Sub(b.filled))/float64(refill))
	b.filled, b.spilled = now, b.spilled && b.tokens < burst
	for what, last := range b.counted {
		if now.Sub(last) >= counted {
			delete(b.counted, what)
		}
	}
}

// removeOld drops the buckets that equal a new bucket, once in each refill time.
func (l *limit) removeOld(now time.Time) {
	if l.buckets == nil {
		l.buckets, l.swept = map[subject]*bucket{}, now
	}
	if now.Sub(l.swept) < refill {
		return
	}
	l.swept = now
	for of, b := range l.buckets {
		if b.refill(now); b.tokens >= burst && len(b.counted) == 0 {
			delete(l.buckets, of)
		}
	}
}

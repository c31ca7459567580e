// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package limits

import "time"

// Pool identifies the objects whose share is limited: the objects of one kind that belong to one resource.
type Pool struct {
	// Resource is the name of the resource.
	Resource string `json:"resource"`
	// Kind is the resource's own kind, or the kind of children of its objects.
	Kind string `json:"kind"`
}

// fresh is how long a count of the objects of a pool is used before they are counted again.
const fresh = time.Second

// pool has the counts of a [Pool] while deletions of it wait, or have begun lately.
type pool struct {
	// waits is how many deletions wait.
	waits int
	// spent is how many deletions had begun when another one was held. They count until no deletion waits.
	spent int
	// counted is when the objects were counted last, and young how many of them were new.
	counted time.Time
	young   int
	// most is the largest count of this minute, which began at since. before is the largest count of the minute before.
	most, before int
	since        time.Time
	// inherited is how many deletions waited in the last term. They count until the time in until.
	inherited int
	until     time.Time
}

// count counts the objects of the pool, unless the last count is fresh.
func (p *pool) count(objects func(after time.Time) (all, young int), now time.Time) {
	if now.Sub(p.counted) < fresh {
		return
	}
	if now.Sub(p.since) >= window {
		p.before, p.most, p.since = p.most, 0, now
	}
	all, young := objects(now.Add(-window))
	p.most, p.young, p.counted = max(p.most, all), young, now
}

// all returns how many objects there were before the counted deletions. It is at least the number of these. Gone is the
// number of objects to delete that the cache has lost, so that they are not counted.
func (p *pool) all(deletions, gone int) int { return max(max(p.most, p.before)+gone, deletions) }

// waiting returns how many deletions wait. As long as the deletions of the last term count, it is at least their number.
func (p *pool) waiting(now time.Time) int {
	if now.Before(p.until) {
		return max(p.waits, p.inherited)
	}
	return p.waits
}

// idle reports whether the pool can be dropped.
func (p *pool) idle(now time.Time) bool {
	return p.waits == 0 && !now.Before(p.until) && now.Sub(p.counted) >= 2*window
}

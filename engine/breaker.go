// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// breakerBurst is how many passes in quick succession may write what an object's passes wrote
	// shortly before, and breakerRefill the time after which one more is allowed.
	breakerBurst  = 30
	breakerRefill = 2 * time.Second
	// newsBurst and newsRefill are the same for passes that write something new: a roll-out of many
	// children does, and a status that follows many pods.
	newsBurst  = 300
	newsRefill = breakerRefill
	// breakerPause is how long an object that used them up rests before it is probed again.
	breakerPause = time.Minute
)

// breaker stops an object whose passes write again and again: its handlers undo each other, or
// somebody else's controller and this one do. Passes that write nothing are free.
type breaker struct {
	same, news allowance
	// recent tells what the last writing passes wrote.
	recent [4]uint32
	until  time.Time
}

// allowance is how much of a burst is spent, and since when it is refilled.
type allowance struct {
	spent int
	last  time.Time
}

// spend reports whether there was no more.
func (a *allowance) spend(now time.Time, burst int, refill time.Duration) (none bool) {
	if refilled := int(now.Sub(a.last) / refill); refilled > 0 {
		a.spent = max(0, a.spent-refilled)
		a.last = now
	}
	a.spent++
	return a.spent > burst
}

// wrote counts a pass that wrote something, which content tells from other things, and reports
// whether it was one too many.
func (b *breaker) wrote(now time.Time, content uint32) (opened bool) {
	known := slices.Contains(b.recent[:], content)
	if !known {
		copy(b.recent[:], b.recent[1:])
		b.recent[len(b.recent)-1] = content
	}
	switch {
	case known && b.same.spend(now, breakerBurst, breakerRefill):
		b.until = now.Add(breakerPause)
		// The probe may write once; a second pass opens it again. The pause refills nothing.
		b.same = allowance{breakerBurst - 1, b.until}
		return true
	case !known && b.news.spend(now, newsBurst, newsRefill):
		b.until = now.Add(breakerPause)
		b.news = allowance{newsBurst - 1, b.until}
		return true
	}
	return false
}

// rests returns how long the object is still held back.
func (b *breaker) rests(now time.Time) time.Duration { return max(0, b.until.Sub(now)) }

// contentOf tells what an object that was written has in it from other contents, without what is
// another at each write. The status counts only for who writes it.
func contentOf(o *unstructured.Unstructured, state string, status bool) uint32 {
	notes := o.GetAnnotations() // a copy
	delete(notes, state)
	tree := map[string]any{"": []any{o.GetUID(), o.GetLabels(), notes, o.GetFinalizers(), o.GetOwnerReferences()}}
	for key, value := range o.Object {
		switch {
		case key == "metadata", key == "status" && !status:
		case key == "status":
			tree[key] = timeless(value)
		default:
			tree[key] = value
		}
	}
	hash := fnv.New32a()
	_ = json.NewEncoder(hash).Encode(tree) // what comes from the server can be written
	return hash.Sum32()
}

// timeless is a status without what moves by itself.
func timeless(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, below := range value {
			if key != "lastTransitionTime" && key != "observedGeneration" {
				out[key] = timeless(below)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, below := range value {
			out[i] = timeless(below)
		}
		return out
	}
	return value
}

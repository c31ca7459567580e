// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package breaker stops objects whose passes write again and again without coming to rest: two handlers undo each other, the
// operator and another controller do, or objects follow each other in a ring. A [Breaker] counts the passes of one object. A
// [Trail] knows which pass woke which. A [Row] holds back a handler that asks to run at once again and again. It is pure.
package breaker

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

const (
	// sameBurst is how many passes in quick succession may write what an object's passes wrote shortly
	// before, and refill the time after which one more is allowed.
	sameBurst = 30
	// newBurst is the same for passes that write something new: a roll-out of many children does, and a
	// status that follows many pods.
	newBurst = 300
	refill   = 2 * time.Second
	// pause is how long an object that used them up is held back before it is probed again.
	pause = time.Minute
)

// Breaker holds back one object that loops. Its zero value, and nil, have seen nothing yet. Passes that write nothing
// are free.
type Breaker struct {
	// since is up to when what is spent was refilled last; while the object is held back, the end of that.
	since time.Time
	// same and other are how much of the two bursts is spent.
	same, other uint16
	// recent tells what the last writing passes wrote.
	recent [4]uint32
}

// Wrote counts a pass that wrote something, which content (see [Content]) tells from other things, and
// reports whether it was one too many: the object is held back for a minute from then on. A pass that is paced (see [Wake])
// counts only where it writes what one before it wrote.
func (b *Breaker) Wrote(now time.Time, content uint32, paced bool) (opened bool) {
	b.refill(now)
	spent, burst := &b.same, uint16(sameBurst)
	if !slices.Contains(b.recent[:], content) {
		copy(b.recent[:], b.recent[1:])
		b.recent[len(b.recent)-1] = content
		if paced {
			return false
		}
		spent, burst = &b.other, newBurst
	}
	if *spent++; *spent <= burst {
		return false
	}
	// The probe may write once; a second pass opens it again. The pause refills nothing.
	*spent, b.since = burst-1, now.Add(pause)
	return true
}

func (b *Breaker) refill(now time.Time) {
	if refilled := int64(now.Sub(b.since) / refill); refilled > 0 {
		b.same -= uint16(min(refilled, int64(b.same)))
		b.other -= uint16(min(refilled, int64(b.other)))
		b.since = now
	}
}

// Wait returns how long the object is still held back; zero when it is not.
func (b *Breaker) Wait(now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	return max(0, b.since.Sub(now))
}

// Content tells what an object that was written has in it from other contents, without what is another at
// each write: versions, times, the operator's state annotation, which is named. The status counts only for
// who writes it.
func Content(o *unstructured.Unstructured, state string, status bool) uint32 {
	metadata, _ := o.Object["metadata"].(map[string]any)
	notes, _ := metadata["annotations"].(map[string]any)
	if _, has := notes[state]; has {
		notes = maps.Clone(notes)
		delete(notes, state)
	}
	tree := make(map[string]any, len(o.Object))
	tree[""] = []any{metadata["uid"], metadata["labels"], notes, metadata["finalizers"], metadata["ownerReferences"]}
	for key, value := range o.Object {
		switch {
		case key == "metadata", key == "status" && !status:
		case key == "status":
			tree[key] = timeless(value)
		default:
			tree[key] = value
		}
	}
	sum, _ := plain.Hash(tree) // what comes from the server is JSON
	return uint32(sum)
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

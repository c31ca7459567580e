// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

// Package breaker stops objects whose reconciles write again and again without coming to rest: two handlers undo each
// other, the operator and another controller do, or objects trigger each other in a ring. A [Breaker] counts the
// reconciles of one object. A [Trail] records which reconcile woke which. A [Streak] holds back a handler that repeatedly asks
// to run at once. It is pure.
package breaker

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

const (
	// sameBurst is how many reconciles in quick succession may repeat an earlier write of the object's reconciles; refill
	// is the time after which one more is allowed.
	sameBurst = 30
	// newBurst is the same for reconciles with a new write, as in a roll-out of many children, or for a status that
	// follows many pods.
	newBurst = 300
	refill   = 2 * time.Second
	// pause is how long an object is held back after that, before one reconcile is allowed as a probe.
	pause = time.Minute
)

// Breaker holds back an object that loops. Its zero value, and nil, have counted nothing. Reconciles without writes are
// free.
type Breaker struct {
	// since is when the bursts were last refilled; while the object is held back, the end of that.
	since time.Time
	// same and other are the spent parts of the two bursts.
	same, other uint16
	// recent identifies the last writes.
	recent [4]uint32
}

// Wrote counts a reconcile with a write, which content (see [Content]) identifies, and reports whether it exceeds the
// burst: the object is then held back for a minute. A paced reconcile (see [Wake]) counts only if it repeats an earlier
// write.
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
	// The probe may write once; a second reconcile opens it again. The pause refills nothing.
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

// Wait returns how long the object is still held back; zero if it is not.
func (b *Breaker) Wait(now time.Time) time.Duration {
	if b == nil {
		return 0
	}
	return max(0, b.since.Sub(now))
}

// Content identifies the content of a written object, without the parts that differ at each write: versions, times,
// and the operator's state annotation, whose key is state. The status counts only if it was written.
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
	sum, _ := plain.Hash(tree) // values of the server are JSON
	return uint32(sum)
}

// timeless returns a status without times.
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

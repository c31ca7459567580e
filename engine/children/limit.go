// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cache/source"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
	"github.com/handwerk-dev/handwerk/engine/decide/limits"
)

// heldError is the error of a deletion that a limit holds. It wraps an error of [dsl.Waiting], so a handler that returns
// it waits.
type heldError struct {
	error
	answer limits.Answer
}

// Unwrap returns the error of [dsl.Waiting].
func (e *heldError) Unwrap() error { return e.error }

// mayDelete returns a [heldError] if a limit holds the deletion of a child. Otherwise the deletion counts as begun.
// Kind is nil for a child that no cache shows.
func (c *children) mayDelete(kind *source.Source, o *unstructured.Unstructured) error {
	s, f := c.session, c.session.family
	answer := f.settings.Limits.Ask(limits.Deletion{
		Pool: limits.Pool{Resource: f.settings.Resource.Name.String(), Kind: o.GetKind()}, Owner: limits.Key(s.in.Key), Object: string(o.GetUID()), Cause: c.cause, Handler: c.attempt.Handler,
		Count: func(after time.Time) (all, young int) { return Count(f.childrenOf(kind), after) },
	}, time.Now())
	if answer.CanBegin() {
		return nil
	}
	what := "the deletion of " + ownership.PlaceOf(o).Describe() + " to begin: " + answer.Summary()
	return &heldError{dsl.Waiting(what, answer.After), answer}
}

// childrenOf yields the children of a kind in the cache, of all owners.
func (f *Family) childrenOf(kind *source.Source) iter.Seq[*cached.Object] {
	return func(yield func(*cached.Object) bool) {
		if kind == nil {
			return
		}
		for _, o := range kind.Objects("") {
			if f.ownerKey(kind, o) != nil && !yield(o) {
				return
			}
		}
	}
}

// Count counts all objects, and the young ones: created after a time, and not being deleted.
func Count(objects iter.Seq[*cached.Object], after time.Time) (all, young int) {
	for o := range objects {
		if all++; o.GetDeletionTimestamp() == nil && o.GetCreationTimestamp().After(after) {
			young++
		}
	}
	return all, young
}

// whyDeleted returns the cause for deleting the children of an owner that is gone or is being deleted.
func (s *Session) whyDeleted() limits.Cause {
	if s.in.Object.GetDeletionTimestamp() == nil {
		return limits.Selector // the owner still exists, and has left the selector
	}
	return limits.Deleted
}

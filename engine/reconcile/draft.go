// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Draft is an object as a handler sees it: with the changes of earlier handlers in the reconcile.
type Draft struct {
	// Patch has these changes, with transformations replaced by their results.
	Patch   *dsl.Patch
	Current *unstructured.Unstructured
	// Look has the current object.
	Look *progress.Snapshot
}

// draftOf returns the draft of an object without changes of handlers.
func draftOf(o *unstructured.Unstructured) Draft {
	return Draft{Patch: dsl.NewPatch(), Current: o, Look: progress.NewSnapshot(o.Object)}
}

// Again returns the draft of an object without changes of handlers, with the outcomes of this draft.
func (d Draft) Again(o *unstructured.Unstructured) Draft {
	return Draft{Patch: dsl.NewPatch(), Current: o, Look: d.Look.At(o.Object)}
}

// With returns the draft with another handler's patch, in a reconcile at a time over an object of a generation. The
// patch has no transformations, and is joined in place.
func (d Draft) With(wants *dsl.Patch, generation int64, at time.Time) Draft {
	laid, change, _, err := patch.Apply(d.Current, wants, generation, at)
	if err != nil {
		return d
	}
	d.Patch.Join(wants)
	if laid != d.Current {
		d.Current, d.Look = laid, d.Look.With(laid.Object, change)
	}
	return d
}

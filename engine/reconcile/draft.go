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

// Draft is an object as handlers see it: with what those before them in the reconcile want of it.
type Draft struct {
	// Patch is what they want, with what transformations make of the object in their place.
	Patch   *dsl.Patch
	Current *unstructured.Unstructured
	// Look is a look at the current object.
	Look *progress.Look
}

// draftOf returns the draft of an object before any handler wants anything of it.
func draftOf(o *unstructured.Unstructured) Draft {
	return Draft{Patch: dsl.NewPatch(), Current: o, Look: progress.NewLook(o.Object)}
}

// Again returns the draft of an object before any handler wants anything of it, with the outcomes of handlers that this draft has.
func (d Draft) Again(o *unstructured.Unstructured) Draft {
	return Draft{Patch: dsl.NewPatch(), Current: o, Look: d.Look.At(o.Object)}
}

// With returns the draft with what one more handler wants, in a reconcile at a time over an object of a generation. The patch has no
// transformations, and is joined in place.
func (d Draft) With(wants *dsl.Patch, generation int64, at time.Time) Draft {
	laid, change, _, err := patch.Lay(d.Current, wants, generation, at)
	if err != nil {
		return d
	}
	d.Patch.Join(wants)
	if laid != d.Current {
		d.Current, d.Look = laid, d.Look.With(laid.Object, change)
	}
	return d
}

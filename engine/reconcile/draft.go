// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package pass

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/progress"
)

// Draft is an object as handlers see it: with what those before them in the pass want of it.
type Draft struct {
	// Patch is what they want, with what transformations make of the object in their place.
	Patch   *dsl.Patch
	Current *unstructured.Unstructured
	// Look is a look at the current object.
	Look *book.Look
	// Whole is the object with what its cache does not hold, and without what handlers want; nil where Current is all that is
	// known.
	Whole *unstructured.Unstructured
}

// DraftOf returns the draft of an object before any handler wants anything of it.
func DraftOf(o *unstructured.Unstructured) Draft {
	return Draft{Patch: dsl.NewPatch(), Current: o, Look: book.NewLook(o.Object)}
}

// Again returns the draft of an object before any handler wants anything of it, with the outcomes of handlers that this draft has.
func (d Draft) Again(o *unstructured.Unstructured) Draft {
	return Draft{Patch: dsl.NewPatch(), Current: o, Look: d.Look.At(o.Object)}
}

// Full returns the object with all that is known of it and what handlers want, in a pass at a time over an object of a
// generation. Transformations are made of that.
func (d Draft) Full(generation int64, at time.Time) (*unstructured.Unstructured, error) {
	if d.Whole == nil {
		return d.Current, nil
	}
	full, _, _, err := patch.Lay(d.Whole, d.Patch, generation, at)
	return full, err
}

// With returns the draft with what one more handler wants; generation and at are as for Full. The patch is joined in place.
// The error is that of a transformation: then the draft is as it was.
func (d Draft) With(wants *dsl.Patch, generation int64, at time.Time) (Draft, error) {
	made := wants
	if len(wants.Transforms) > 0 {
		full, err := d.Full(generation, at)
		if err == nil {
			made, err = patch.Resolve(full, wants, generation, at)
		}
		if err != nil {
			return d, err
		}
	}
	laid, change, made, err := patch.Lay(d.Current, made, generation, at)
	if err != nil {
		return d, err
	}
	d.Patch.Join(made)
	if laid != d.Current {
		d.Current, d.Look = laid, d.Look.With(laid.Object, change)
	}
	return d, nil
}

// Repeats reports whether what a handler wants changes in this draft only what it changed in an earlier one too, from the
// same values to the same values; see [patch.Edit]. Where the earlier draft is not known whole, what it does not show is
// taken to have been empty. Generation and at are as for Full.
//
// Conditions to take away do not count: the managedFields of the object that has them say who set them.
func (d Draft) Repeats(first Draft, wants *dsl.Patch, generation int64, at time.Time) bool {
	bare := *wants
	bare.Retired = nil
	if first.Whole == nil && d.Whole != nil {
		bare.Transforms = nil // they are worked out from the whole object
	}
	shown, full, err := d.edits(&bare, generation, at)
	if err != nil {
		return false
	}
	firstShown, firstFull, err := first.edits(&bare, generation, at)
	return err == nil && shown.Repeats(firstShown) && full.Repeats(firstFull)
}

// edits returns what a handler's wants change in the object as handlers see it, and in all of it.
func (d Draft) edits(wants *dsl.Patch, generation int64, at time.Time) (shown, full patch.Edit, err error) {
	whole, err := d.Full(generation, at)
	if err != nil {
		return shown, full, err
	}
	laid, _, made, err := patch.Lay(whole, wants, generation, at)
	if err != nil {
		return shown, full, err
	}
	full = patch.Edit{Before: whole.Object, After: laid.Object}
	if laid, _, _, err = patch.Lay(d.Current, made, generation, at); err != nil {
		return shown, full, err
	}
	return patch.Edit{Before: d.Current.Object, After: laid.Object}, full, nil
}

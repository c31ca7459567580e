// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/book"
	"github.com/handwerk-dev/handwerk/engine/cause"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// draft is an object as handlers see it: with what those before them in the pass want of it.
type draft struct {
	// patch is what they want.
	patch   *dsl.Patch
	current *unstructured.Unstructured
	// look is a look at the current object.
	look *book.Look
}

// draftOf returns the draft of which nobody wants anything yet.
func draftOf(o *unstructured.Unstructured) draft {
	return draft{patch: dsl.NewPatch(), current: o, look: book.NewLook(o.Object)}
}

// with returns the draft with what one more handler wants, in a pass with these facts. The patch is joined in place.
func (d draft) with(wants *dsl.Patch, f facts) draft {
	d.patch.Join(wants)
	if wants.Empty() {
		return d
	}
	if change := patch.Change(d.current, wants, f.object.GetGeneration(), f.now); len(change) > 0 {
		d.current = &unstructured.Unstructured{Object: cause.Patched(d.current.Object, change)}
		d.look = book.NewLook(d.current.Object)
	}
	return d
}

// show makes a draft what handlers see from here on.
func (p *pass) show(d draft) {
	if d.current != p.current {
		p.filters.Reset()
	}
	p.draft = d
}

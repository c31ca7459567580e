// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// finalizers returns the object's finalizers with the operator's added or removed as the marks say, and whether
// that changes the list. Handlers cannot remove the operator's.
func (m Marks) finalizers(o *unstructured.Unstructured, c change) (list []any, changed bool) {
	found, _ := dsl.Path{"metadata", "finalizers"}.In(o.Object)
	if wanted, given := (dsl.Path{"metadata", "finalizers"}).In(c.tree); given {
		found = wanted
	}
	before, _ := found.([]any)
	own := func(f any) bool {
		return f == m.Finalizer || slices.ContainsFunc(m.Earlier, func(e string) bool { return f == e })
	}
	if m.Remove {
		return slices.DeleteFunc(slices.Clone(before), own), slices.ContainsFunc(before, own)
	}
	after := slices.Clone(before)
	for _, f := range o.GetFinalizers() {
		if own(f) && !slices.Contains(after, any(f)) {
			after = append(after, f)
		}
	}
	if m.Add && !slices.Contains(after, any(m.Finalizer)) {
		after = append(after, m.Finalizer)
	}
	return after, len(after) > len(before)
}

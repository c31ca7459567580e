// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
)

// finalizers returns those that the object is to have with the operator's as the marks say, and whether that is another
// list than there would be without. Handlers do not take the operator's off.
func (m Marks) finalizers(o *unstructured.Unstructured, c change) (list []any, changed bool) {
	found, _ := dsl.Path{"metadata", "finalizers"}.In(o.Object)
	if wanted, given := (dsl.Path{"metadata", "finalizers"}).In(c.tree); given {
		found = wanted
	}
	before, _ := found.([]any)
	has, there := slices.Contains(before, any(m.Finalizer)), slices.Contains(o.GetFinalizers(), m.Finalizer)
	switch {
	case !has && (m.Add || there && !m.Remove):
		return append(slices.Clone(before), m.Finalizer), true
	case has && m.Remove:
		return slices.DeleteFunc(slices.Clone(before), func(f any) bool { return f == m.Finalizer }), true
	}
	return nil, false
}

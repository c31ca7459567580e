// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// Member is a child of the owner, or a place in the owner's inventory where no cache shows a child.
type Member struct {
	ownership.Place
	// Spec identifies the child, and has its policies.
	Spec dsl.ChildSpec
	// Listed is true if the owner's inventory lists it.
	Listed bool
	// Holds is true if the owner's deletion waits until the child is gone or released.
	Holds bool
	// Object is nil if no cache shows the child.
	Object *unstructured.Unstructured
}

// Members returns the owner's children, as the caches and this reconcile have them, and the other places in its
// inventory, sorted. If the children of a kind cannot be read, the listed ones have no object.
func (s *Session) Members() (out []Member) {
	owner := s.owner()
	seen := map[ownership.Place]bool{}
	for kind := range s.family.kinds.all {
		for _, o := range s.lister.list(kind, owner, false, nil) {
			one := Member{Place: ownership.PlaceOf(o), Object: o, Holds: s.needs(owner, o)}
			one.Spec, _ = owner.Spec(o)
			one.Listed, seen[one.Place] = owner.Inventory.Lists(one.Place), true
			out = append(out, one)
		}
	}
	for _, place := range owner.Inventory.Places() {
		if !seen[place] {
			title, _ := owner.Inventory.Title(place)
			spec, _ := ownership.ParseTitle(title)
			out = append(out, Member{Place: place, Spec: spec, Listed: true})
		}
	}
	for i := range out {
		out[i].Spec.Handler = collision.Renamed(s.family.settings.Handlers, out[i].Spec.Handler)
	}
	slices.SortStableFunc(out, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Spec.Handler, b.Spec.Handler), cmp.Compare(a.Spec.Name, b.Spec.Name), cmp.Compare(a.String(), b.String()))
	})
	return out
}

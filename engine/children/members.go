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

// Member is a child of the owner, or a place in its record where no cache shows one.
type Member struct {
	ownership.Place
	// Spec says how the child is kept, and which one it is.
	Spec dsl.ChildSpec
	// Recorded: the owner's record lists it.
	Recorded bool
	// Holds: the owner's deletion waits until it is gone, or released.
	Holds bool
	// Object is nil where no cache shows the child.
	Object *unstructured.Unstructured
}

// Members returns the owner's children, as the caches and this reconcile have them, and what else its record lists, sorted. Where the
// children of a kind cannot be seen, those that the record lists are without an object.
func (s *Session) Members() (out []Member) {
	owner := s.owner()
	seen := map[ownership.Place]bool{}
	for kind := range s.family.kinds.all {
		for _, o := range s.lister.list(kind, owner, false, nil) {
			one := Member{Place: ownership.PlaceOf(o), Object: o, Holds: s.needs(owner, o)}
			one.Spec, _ = owner.Spec(o)
			one.Recorded, seen[one.Place] = owner.Record.Lists(one.Place), true
			out = append(out, one)
		}
	}
	for _, place := range owner.Record.Places() {
		if !seen[place] {
			title, _ := owner.Record.Title(place)
			spec, _ := ownership.ParseTitle(title)
			out = append(out, Member{Place: place, Spec: spec, Recorded: true})
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

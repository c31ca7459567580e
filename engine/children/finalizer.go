// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// NeedsFinalizer reports whether children or patched objects need the owner's finalizer. If that is unknown, it returns held:
// whether the owner has the finalizer so far.
func (s *Session) NeedsFinalizer(held bool) bool {
	owner := s.owner()
	if len(owner.Inventory.Targets()) > 0 {
		return true
	}
	gone := s.inventory.outdated(owner.Inventory)
	for _, place := range owner.Inventory.Places() {
		if slices.Contains(gone, place) {
			continue
		}
		kind, _ := s.family.kinds.shows(place)
		var o *unstructured.Unstructured
		if kind != nil {
			o = s.lister.get(kind, id{kind.Resource().GVR, cache.ObjectName{Namespace: place.Namespace, Name: place.Name}})
		}
		switch {
		case o == nil && held, o != nil && s.needs(owner, o):
			return true
		}
	}
	return held && s.orphans(owner)
}

// orphans reports whether there may be children with an owner reference that outlive the owner. A lost inventory does
// not list them.
func (s *Session) orphans(owner ownership.Owner) bool {
	if s.family.kinds.current() != nil {
		return true
	}
	if s.lister.some(func(o *unstructured.Unstructured) bool { return owner.Leaves(o) }) {
		return true
	}
	for kind := range s.family.kinds.all {
		for _, o := range kind.OwnedBy(string(s.in.Object.GetUID())) {
			newer := s.lister.has(id{kind.Resource().GVR, cache.MetaObjectToName(o)})
			if !newer && owner.Leaves(o) {
				return true
			}
		}
	}
	return false
}

// needs reports whether the engine has to delete or release a child before its owner goes. A child of a handler that
// only runs for deletions is left to that handler.
func (s *Session) needs(owner ownership.Owner, o *unstructured.Unstructured) bool {
	spec, _ := owner.Spec(o)
	inventory := owner.Inventory
	all := s.family.settings.Handlers
	at := collision.HandlerOf(all, collision.Renamed(all, s.family.names.keys.Maker(o)))
	if s.in.Deleting && (at >= 0 && collision.IsForDeletionsOnly(all[at]) || s.family.madeForDeletion(inventory, ownership.PlaceOf(o))) {
		return false
	}
	return owner.NeedsFinalizer(spec, o.GetNamespace())
}

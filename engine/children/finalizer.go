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

// Holds reports whether there are children or patched objects about which something has to be done before the owner goes. Where that is not known,
// the answer is held: whether the owner has the finalizer so far.
func (s *Session) Holds(held bool) bool {
	owner := s.owner()
	if len(owner.Record.Targets()) > 0 {
		return true
	}
	gone := s.record.outdated(owner.Record)
	for _, place := range owner.Record.Places() {
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

// orphans reports whether there may be children with an owner reference that are to be left behind. A record that was lost does
// not list them.
func (s *Session) orphans(owner ownership.Owner) bool {
	if s.family.kinds.current() != nil {
		return true
	}
	if s.lister.some(func(o *unstructured.Unstructured) bool { return owner.Leaves(o) }) {
		return true
	}
	for kind := range s.family.kinds.all {
		for _, o := range kind.OwnedBy(string(s.pass.Object.GetUID())) {
			newer := s.lister.has(id{kind.Resource().GVR, cache.MetaObjectToName(o)})
			if !newer && owner.Leaves(o) {
				return true
			}
		}
	}
	return false
}

// needs reports whether something has to be done about a child before its owner goes. A child of a handler that
// runs for deletions alone is left to that handler.
func (s *Session) needs(owner ownership.Owner, o *unstructured.Unstructured) bool {
	spec, _ := owner.Spec(o)
	record := owner.Record
	all := s.family.settings.Handlers
	at := collision.HandlerOf(all, collision.Renamed(all, s.family.names.keys.Maker(o)))
	if s.pass.Deleting && (at >= 0 && collision.Lasts(all[at]) || s.family.madeForDeletion(record, ownership.PlaceOf(o))) {
		return false
	}
	return owner.Needs(spec, o.GetNamespace())
}

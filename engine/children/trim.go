// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
	"github.com/handwerk-dev/handwerk/engine/decide/collision"
)

// outdated returns the places that can leave an inventory. Their children are gone, or were made for an earlier
// deletion.
func (r *ownerInventory) outdated(inventory *ownership.Inventory) (out []ownership.Place) {
	if r.family.kinds.settled("") != nil {
		return nil
	}
	owner, parted := r.owner(), !r.in.Deleting && slices.ContainsFunc(r.family.settings.Handlers, collision.IsForDeletionsOnly)
	r.mu.Lock()
	defer r.mu.Unlock()
	var seen []ownership.Place
	for _, place := range inventory.Places() {
		there, known := r.family.kinds.claimed(owner, place)
		unconfirmed := r.unconfirmed.has(place)
		if there && unconfirmed {
			seen = append(seen, place)
		}
		_, entering := r.entering[place]
		if known && !there && !entering && !unconfirmed && !r.cut(owner, place) || parted && r.family.madeForDeletion(inventory, place) {
			out = append(out, place)
		}
	}
	r.unconfirmed.remove(seen...) // in one call, because each call copies the rest
	return out
}

// cut reports whether somebody has removed the ties of an object that was applied for the owner. The label may come
// back. An object that this reconcile has applied without ties does not count. The lock is held.
func (r *ownerInventory) cut(owner ownership.Owner, place ownership.Place) bool {
	kind, h := r.family.kinds.shows(place)
	if h == nil {
		return false
	}
	key := cache.ObjectName{Namespace: place.Namespace, Name: place.Name}
	o, found := h.Object(key)
	return found && owner.IsOrphan(o) && !r.lister.has(id{kind.Resource().GVR, key})
}

// madeForDeletion reports whether a handler that only runs for deletions has made the child at a place. If the owner is
// not being deleted, it left the selectors before and came back. The child is from that time.
func (f *Family) madeForDeletion(inventory *ownership.Inventory, place ownership.Place) bool {
	title, _ := inventory.Title(place)
	spec, _ := ownership.ParseTitle(title)
	at := collision.HandlerOf(f.settings.Handlers, collision.Renamed(f.settings.Handlers, spec.Handler))
	return at >= 0 && collision.IsForDeletionsOnly(f.settings.Handlers[at])
}

// copied reports whether the owner has no inventory of its own, but a copy of another object's inventory. If a write of
// the inventory got no answer, it returns false: the owner may have an inventory of its own. The lock is held.
func (r *ownerInventory) copied() bool {
	if r.known.inventory != nil || r.known.text == "" || r.in.Memory.unsure {
		return false
	}
	inventory, err := ownership.ParseInventory(r.known.text, r.in.Object.GetUID())
	return inventory == nil && err == nil // an unreadable inventory may be of a later version
}

// trim implements [Session.Trim].
func (r *ownerInventory) trim(owner *unstructured.Unstructured) map[string]patch.Note {
	if r.in.Deleting {
		return nil
	}
	r.observe(owner)
	r.mu.Lock()
	before, copied, was := r.known.inventory, r.copied(), r.known.text
	r.mu.Unlock()
	switch {
	case before == nil && !copied:
		return nil
	case before == nil:
		return map[string]patch.Note{r.family.names.keys.Inventory: {Was: was}}
	}
	left := r.outdated(before)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(left) > 0 {
		inventory := before.Without(left...)
		text, err := inventory.Encode(r.in.Object.GetUID())
		if err != nil {
			return nil // it was encoded before, and was longer
		}
		r.known.inventory, r.known.next, r.known.since = inventory, text, r.family.epoch(r.in.Key)
		r.family.inventories.set(r.in.Key, inventory)
	}
	if r.known.next == "" {
		return nil
	}
	r.in.Memory.unsure = true
	return map[string]patch.Note{r.family.names.keys.Inventory: {Text: r.known.next, Alone: r.known.alone}}
}

// InventoryAnnotation removes the children that were made for the deletion, and the released objects, from the owner's
// inventory. It returns the annotation to write, or nil if there was nothing to remove. The owner may come back and
// leave again, and these children must not be taken for the children of that deletion.
func (s *Session) InventoryAnnotation(live *unstructured.Unstructured) map[string]patch.Note {
	key := s.family.names.keys.Inventory
	inventory, err := ownership.ParseInventory(live.GetAnnotations()[key], live.GetUID())
	if err != nil {
		return nil // the error was logged when the inventory was read
	}
	made := slices.DeleteFunc(inventory.Places(), func(place ownership.Place) bool { return !s.family.madeForDeletion(inventory, place) })
	if len(made)+len(inventory.Targets()) == 0 {
		return nil
	}
	text, err := inventory.Without(made...).WithoutTargets().Encode(live.GetUID())
	if err != nil {
		return nil // it was encoded before, and was longer
	}
	return map[string]patch.Note{key: {Text: text}}
}

// close keeps the inventory after the writes of a reconcile. If every handler is done, the inventory lists all
// children that existed before it.
func (r *ownerInventory) close(done bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.Memory.unsure = r.lost // the writes of this reconcile were answered
	r.known.closed = r.known.inventory != nil && (r.known.closed || done)
	r.keep()
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl/logmark"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/patch"
)

// knownInventory is the inventory of an owner as this process knows it, from one reconcile to the next.
type knownInventory struct {
	// inventory is the owner's inventory, nil for none. Text is the annotation as it is stored. A former child is removed
	// from inventory at once. The annotation follows when there is something to write.
	inventory *ownership.Inventory
	text      string
	// next is the text of the inventory if it differs from the stored text; else empty. Since is how often the API
	// server's versions had gone back when next was set.
	next  string
	since uint64
	// alone is true if next is written even when nothing else is.
	alone bool
	// closed is true once a reconcile has finished since there is an inventory. Children from before are in the inventory
	// then.
	closed bool
}

// ownerInventory is the owner's inventory of children in one reconcile. It reads the inventory, enters children before
// they are applied, and removes children that are gone. Its methods may be called by several goroutines.
type ownerInventory struct {
	family      *Family
	in          *Input
	writer      *ownerWriter
	lister      *lister
	journal     *journal
	unconfirmed *unconfirmed

	// turn is held while the inventory is written.
	turn sync.Mutex

	mu    sync.Mutex // guards the fields below, and their parts in the memory
	known knownInventory
	// entering are the places that this reconcile enters into the inventory. The value is true if nothing was known to be
	// there at that time.
	entering map[ownership.Place]bool
	// lost is true if a write of the inventory by an earlier reconcile got no answer, and the owner has not been read
	// since.
	lost bool
	// fault is the error of the last failed write of the inventory.
	fault error
}

// owner returns the handled object as the owner of children.
func (r *ownerInventory) owner() ownership.Owner {
	r.mu.Lock()
	defer r.mu.Unlock()
	return ownership.Owner{
		Object: r.in.Object, Namespaced: r.family.settings.Own.Resource().Namespaced, Keys: r.family.names.keys,
		Inventory: r.known.inventory, Closed: r.known.closed,
	}
}

// read reads the owner's inventory. An inventory that cannot be parsed counts as absent.
func (r *ownerInventory) read() {
	if known := r.in.Memory.inventory; known != nil {
		r.known = *known
	}
	if r.in.Gone && r.known.inventory != nil { // the cache lacks later writes to an object that is gone
		return
	}
	r.observe(r.in.Object)
}

// observe takes over the inventory that an owner has. Places that this process did not enter become unconfirmed. An
// earlier process or a restored backup may have made a child there that no cache shows.
func (r *ownerInventory) observe(owner *unstructured.Unstructured) {
	r.mu.Lock()
	before := r.known.inventory
	r.take(owner)
	now := r.known.inventory
	for place := range r.entering {
		r.entering[place] = r.entering[place] && (now == before || !now.Lists(place))
	}
	r.mu.Unlock()
	if r.in.Gone || now == before {
		return
	}
	r.reportLost(before.Without(now.Places()...))
	var known []ownership.Place
	for _, place := range now.Places() {
		if there, _ := r.family.kinds.claimed(r.owner(), place); there || before.Lists(place) {
			known = append(known, place)
		}
	}
	r.unconfirmed.addAll(now.Without(known...))
}

// reportLost logs places that somebody else has removed from the inventory. At the end of the reconcile, the log also
// names unlisted objects that have the label of a child.
func (r *ownerInventory) reportLost(lost *ownership.Inventory) {
	if lost.Empty() {
		return
	}
	r.in.Prune.Logged = false
	var names []string
	for _, place := range lost.Places() {
		names = append(names, place.Describe())
	}
	const mostNamed = 5
	r.in.Logger.Log().Info("somebody has taken children out of the inventory of children; children that no handler makes again are left alone",
		logmark.Warning, true, "children", names[:min(len(names), mostNamed)], "more", max(0, len(names)-mostNamed))
}

// take is observe for the inventory only. The lock is held.
func (r *ownerInventory) take(owner *unstructured.Unstructured) {
	text, _, _ := unstructured.NestedString(owner.Object, "metadata", "annotations", r.family.names.keys.Inventory)
	switch {
	case r.known.next != "" && r.known.since != r.family.epoch(r.in.Key): // removed children may exist again
	case text == r.known.text:
		return
	case r.known.next != "" && text == r.known.next:
		r.known.text, r.known.next, r.known.alone = text, "", false
		return
	}
	before := r.known.inventory
	inventory, err := ownership.ParseInventory(text, r.in.Object.GetUID())
	switch {
	case err != nil && inventory != nil:
		r.in.Logger.Log().Error(err, "inventory of patched objects is not readable as a whole; what the rest of it names is left alone")
	case err != nil:
		r.in.Logger.Log().Error(err, "inventory of children is not readable; it is begun again, and children and patched objects that only the inventory names are left alone")
	}
	r.known = knownInventory{inventory: inventory, text: text, closed: r.known.closed && inventory != nil}
	r.retain(before.Targets())
}

// retain adds the known targets to an inventory that somebody has overwritten, for example with an older export.
// Children are found again by their marks, and targets have no marks. The lock is held.
func (r *ownerInventory) retain(targets []ownership.Target) {
	inventory := r.known.inventory
	for _, t := range targets {
		if !inventory.ListsTarget(t) {
			inventory = inventory.WithTarget(time.Now(), t)
		}
	}
	if inventory == r.known.inventory {
		return
	}
	text, err := inventory.Encode(r.in.Object.GetUID())
	if err != nil {
		r.in.Logger.Log().Error(err, "inventory of children was overwritten, and cannot be written again")
		return
	}
	r.known.inventory, r.known.next, r.known.since, r.known.alone = inventory, text, r.family.epoch(r.in.Key), true
}

// keep stores the inventory for later reconciles, even if this one fails. The lock is held.
func (r *ownerInventory) keep() {
	r.in.Memory.inventory = nil
	if r.known.inventory != nil || r.known.text != "" { // an unparsable inventory is kept too, so that later reconciles do not parse it again
		known := r.known
		r.in.Memory.inventory = &known
	}
}

// wrote records a write of the reconcile to its own object. The answer may have another inventory.
func (r *ownerInventory) wrote(result patch.Result) {
	r.journal.wroteOwner(result)
	if result.Status || result.Whole {
		r.answered(result.Object)
	}
}

// answered takes over the inventory of the owner that the server has returned.
func (r *ownerInventory) answered(owner *unstructured.Unstructured) {
	r.observe(owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.in.Memory.unsure, r.lost = false, false
	r.keep()
	if !r.in.Gone {
		r.family.inventories.set(r.in.Key, r.known.inventory)
	}
}

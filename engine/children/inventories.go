// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// inventories has the inventories of all owners that have one. Events of children find their owners by them.
type inventories struct {
	mu sync.Mutex
	of map[inbox.Key]*ownership.Inventory
}

// set stores an owner's inventory; nil removes it.
func (r *inventories) set(owner inbox.Key, inventory *ownership.Inventory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case inventory == nil:
		delete(r.of, owner)
	case r.of == nil:
		r.of = map[inbox.Key]*ownership.Inventory{owner: inventory}
	default:
		r.of[owner] = inventory
	}
}

// lists reports whether the inventory of an owner lists a place.
func (r *inventories) lists(owner inbox.Key, place ownership.Place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[owner].Lists(place)
}

// clear removes all inventories.
func (r *inventories) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = nil
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"sync"

	"github.com/handwerk-dev/handwerk/engine/cache/inbox"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// records has the records of the owners that have one: events of children find their owners by it.
type records struct {
	mu sync.Mutex
	of map[inbox.Key]*ownership.Record
}

// set notes an owner's record; nil when it has none.
func (r *records) set(owner inbox.Key, record *ownership.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case record == nil:
		delete(r.of, owner)
	case r.of == nil:
		r.of = map[inbox.Key]*ownership.Record{owner: record}
	default:
		r.of[owner] = record
	}
}

// lists reports whether the record of an owner lists a place.
func (r *records) lists(owner inbox.Key, place ownership.Place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[owner].Lists(place)
}

// clear forgets all records.
func (r *records) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = nil
}

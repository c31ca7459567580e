// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"sync"

	"k8s.io/client-go/tools/cache"
)

// Records are those of a resource's objects, for events of children to find the owners by. The zero value has none.
// Its methods may be called by several goroutines at once.
type Records struct {
	mu sync.Mutex
	of map[cache.ObjectName]*Record
}

// Put notes an owner's record; nil when it has none.
func (r *Records) Put(owner cache.ObjectName, record *Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if record == nil {
		delete(r.of, owner)
		return
	}
	if r.of == nil {
		r.of = map[cache.ObjectName]*Record{}
	}
	r.of[owner] = record
}

// Clear forgets all.
func (r *Records) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = nil
}

// List reports whether the record of an owner lists a place.
func (r *Records) List(owner cache.ObjectName, place Place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[owner].Lists(place)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// runs knows which handlers run at this moment.
type runs struct {
	mu  sync.Mutex
	now map[cache.ObjectName]string
}

// begin notes that a handler runs for the key, and returns what notes its end. A key has one
// handler at a time.
func (r *runs) begin(key cache.ObjectName, handler string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		r.now = map[cache.ObjectName]string{}
	}
	r.now[key] = handler
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.now, key)
	}
}

// list names the handlers with their objects, sorted.
func (r *runs) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for key, handler := range maps.All(r.now) {
		out = append(out, handler+" of "+key.String())
	}
	slices.Sort(out)
	return out
}

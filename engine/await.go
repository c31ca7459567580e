// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/inbox"
)

// announce makes the passes over an object that the operator handles, too, wait for what one over another has
// written to it.
func (r *resource) announce(by inbox.Key, gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	key := cache.MetaObjectToName(o)
	for other := range r.engine.resources.All {
		if other == r && key == by || !other.own.Serves(gvr) {
			continue
		}
		if h := other.own.Informer(key.Namespace); h != nil && h.Selects(key, o.GetLabels()) {
			other.box.Expect(inbox.Write{Cache: other.own, Key: key, UID: o.GetUID(), Version: o.GetResourceVersion(), Own: true})
		}
	}
}

// expecting returns the memory with writes of passes over other objects to wait for.
func (m *memory) expecting(writes []inbox.Write) *memory {
	if len(writes) == 0 {
		return m
	}
	if m == nil {
		m = newMemory(writes[len(writes)-1].UID)
	}
	for _, w := range writes {
		if w.UID == m.uid && !w.Shown() {
			m.writes.Add(w)
		}
	}
	return m
}

// caughtUp reports whether the cache shows this operator's last writes to the object, its children and what else
// its handlers wrote to, as far as the server knows of them.
func (r *resource) caughtUp(ctx context.Context, m *memory) bool {
	return m == nil || m.writes.Shown() || m.writes.Recall(ctx, r.engine.reader)
}

// park puts a key aside until the cache has caught up.
func park(t *turn, m *memory) error {
	if t.Park(&m.writes) {
		return errParked
	}
	return errCaughtUp
}

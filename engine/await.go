// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"hash/crc32"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/inbox"
	"github.com/handwerk-dev/handwerk/engine/loop"
)

// await makes the next pass wait for a write. It holds even when this pass fails: what was sent
// was sent.
func (p *pass) await(f *feed.Feed, o *unstructured.Unstructured) {
	own := f == p.r.own && nameOf(o) == p.key
	p.wait(inbox.Write{Cache: f, Key: nameOf(o), UID: o.GetUID(), Version: o.GetResourceVersion()}, loop.Content(o, p.r.engine.op.StateAnnotation(), own))
}

// awaitGone is await for a deletion.
func (p *pass) awaitGone(f *feed.Feed, key cache.ObjectName, uid types.UID) {
	p.wait(inbox.Write{Cache: f, Key: key, UID: uid}, crc32.ChecksumIEEE([]byte(uid)))
}

func (p *pass) wait(w inbox.Write, content uint32) {
	w.Own = w.Cache == inbox.Cache(p.r.own)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.content += content // in any order
	p.writes = append(p.writes, w)
	p.memory.writes.Set(p.writes)
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

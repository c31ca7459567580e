// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"hash/crc32"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/queue"
)

// await is a write of this operator that the cache has to show.
type await struct {
	feed *feed
	// key and uid are those of the object that was written.
	key cache.ObjectName
	uid types.UID
	// version is what it was written as; empty when it was deleted.
	version string
}

// await makes the next pass wait for a write. It holds even when this pass fails: what was sent
// was sent.
func (p *pass) await(f *feed, o *unstructured.Unstructured) {
	own := f == p.r.own && nameOf(o) == p.key
	p.wait(await{f, nameOf(o), o.GetUID(), o.GetResourceVersion()}, contentOf(o, p.r.engine.op.StateAnnotation(), own))
}

// awaitGone is await for a deletion.
func (p *pass) awaitGone(f *feed, key cache.ObjectName, uid types.UID) {
	p.wait(await{feed: f, key: key, uid: uid}, crc32.ChecksumIEEE([]byte(uid)))
}

func (p *pass) wait(a await, content uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.content += content // in any order
	p.awaits = append(p.awaits, a)
	p.memory.awaits = p.awaits
}

// met reports whether the cache shows the write. What is not watched any more is not waited for.
func (a await) met() bool {
	h := a.feed.handle(a.key.Namespace)
	if h == nil {
		return true
	}
	if a.version != "" {
		return h.CaughtUp(a.version)
	}
	o, found := h.Object(a.key)
	return !found || o.GetUID() != a.uid || o.GetDeletionTimestamp() != nil
}

// caughtUp reports whether the cache shows this operator's last writes to the object, its children
// and what else its handlers wrote to.
func (m *memory) caughtUp() bool {
	if m == nil {
		return true
	}
	if slices.ContainsFunc(m.awaits, func(a await) bool { return !a.met() }) {
		return false
	}
	m.awaits = nil
	return true
}

// park puts a key aside until an event of an object that it waits for. The result is errParked, or
// errCaughtUp when the cache caught up before there was somebody to wake.
func (r *resource) park(key cache.ObjectName, m *memory, childNews bool) error {
	r.mu.Lock()
	e := r.entryLocked(key)
	e.parked = true
	e.child = e.child || childNews
	for _, a := range m.awaits {
		if !slices.Contains(r.waiting[a.uid], key) {
			r.waiting[a.uid] = append(r.waiting[a.uid], key)
		}
	}
	r.mu.Unlock()
	if m.caughtUp() {
		return errCaughtUp
	}
	return errParked
}

// wake is wakeLocked for those who do not hold the lock.
func (r *resource) wake(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeLocked(uid)
}

// wakeLocked brings back the keys that wait for an object. Those for which this was not the event
// park again. The resource's lock is held.
func (r *resource) wakeLocked(uid types.UID) {
	if r.queue == nil {
		return
	}
	for _, key := range r.waiting[uid] {
		r.queue.Add(key, queue.Fresh)
	}
	delete(r.waiting, uid)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"hash/crc32"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/loop"
	"github.com/handwerk-dev/handwerk/engine/queue"
)

// await is a write of this operator that the cache has to show.
type await struct {
	feed *feed.Feed
	// key and uid are those of the object that was written.
	key cache.ObjectName
	uid types.UID
	// version is what it was written as; empty when it was deleted.
	version string
	// own: the object is of the resource whose pass wrote it.
	own bool
}

// await makes the next pass wait for a write. It holds even when this pass fails: what was sent
// was sent.
func (p *pass) await(f *feed.Feed, o *unstructured.Unstructured) {
	own := f == p.r.own && nameOf(o) == p.key
	p.wait(await{feed: f, key: nameOf(o), uid: o.GetUID(), version: o.GetResourceVersion()}, loop.Content(o, p.r.engine.op.StateAnnotation(), own))
}

// awaitGone is await for a deletion.
func (p *pass) awaitGone(f *feed.Feed, key cache.ObjectName, uid types.UID) {
	p.wait(await{feed: f, key: key, uid: uid}, crc32.ChecksumIEEE([]byte(uid)))
}

func (p *pass) wait(a await, content uint32) {
	a.own = a.feed == p.r.own
	p.mu.Lock()
	defer p.mu.Unlock()
	p.content += content // in any order
	p.awaits = append(p.awaits, a)
	p.memory.awaits = p.awaits
}

// met reports whether the cache shows the write. What is not watched any more is not waited for.
//
// A cache that has not been told of changes for long holds nobody up either, not for deletion above
// all: until it is told again, handlers that read it get an error. But the object itself is read from
// its own cache, so no pass begins before that one has caught up.
func (a await) met() bool {
	h := a.feed.Informer(a.key.Namespace)
	if h == nil || !a.own && h.State().Blind {
		return true
	}
	if a.version != "" {
		return h.CaughtUp(a.version)
	}
	o, found := h.Object(a.key)
	return !found || o.GetUID() != a.uid || o.GetDeletionTimestamp() != nil
}

// expecting returns the memory with writes of passes over other objects to wait for.
func (m *memory) expecting(writes []await) *memory {
	if len(writes) == 0 {
		return m
	}
	if m == nil {
		m = newMemory(writes[len(writes)-1].uid)
	}
	for _, a := range writes {
		if a.uid == m.uid && !a.met() {
			m.awaits = append(m.awaits, a)
		}
	}
	return m
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
	m.awaits, m.parked = nil, time.Time{}
	return true
}

// recall asks the server about writes that a key has been parked for so long that they may never be
// shown, and gives up those that the server does not know any more: it was restored from a backup, and
// its versions have gone back. It reports whether none is left.
func (r *resource) recall(ctx context.Context, m *memory) bool {
	if m.parked.IsZero() || time.Since(m.parked) < parkedLook {
		return false
	}
	m.awaits = slices.DeleteFunc(m.awaits, func(a await) bool { return a.met() || r.forgot(ctx, a) })
	if len(m.awaits) > 0 {
		m.parked = time.Now()
		return false
	}
	m.parked = time.Time{}
	return true
}

// forgot reports whether the server does not know of a write any more.
func (r *resource) forgot(ctx context.Context, a await) bool {
	if h := a.feed.Informer(a.key.Namespace); h == nil || h.State().Fault != nil {
		return false // that the cache is behind has another reason
	}
	live, err := r.engine.reader(ctx, a.feed.Resource().GVR, a.key)
	if err != nil {
		return false // the next look tells
	}
	if a.version == "" {
		return live != nil && live.GetUID() == a.uid && live.GetDeletionTimestamp() == nil
	}
	if live == nil || live.GetUID() != a.uid {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), a.version)
	return err == nil && order < 0
}

// park puts a key aside until an event of an object that it waits for. The result is errParked, or
// errCaughtUp when the cache caught up before there was somebody to wake.
func (r *resource) park(key cache.ObjectName, m *memory, childNews bool) error {
	r.mu.Lock()
	e := r.entryLocked(key)
	e.parked = true
	if m.parked.IsZero() {
		m.parked = time.Now()
	}
	e.child = e.child || childNews
	for _, a := range m.awaits {
		if !slices.Contains(r.waiting[a.uid], key) {
			r.waiting[a.uid] = append(r.waiting[a.uid], key)
			m.waits = append(m.waits, a.uid)
		}
	}
	r.mu.Unlock()
	if m.caughtUp() {
		r.unwait(key, m)
		return errCaughtUp
	}
	return errParked
}

// unwait forgets what a key was put aside for: not every object has an event that would do so.
func (r *resource) unwait(key cache.ObjectName, m *memory) {
	if m == nil || len(m.waits) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uid := range m.waits {
		if left := slices.DeleteFunc(r.waiting[uid], func(k cache.ObjectName) bool { return k == key }); len(left) > 0 {
			r.waiting[uid] = left
		} else {
			delete(r.waiting, uid)
		}
	}
	m.waits = nil
}

// wakeAll brings back every key that is parked, to look whether it still must be.
func (r *resource) wakeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.waiting {
		r.wakeLocked(uid)
	}
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

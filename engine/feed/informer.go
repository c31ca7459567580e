// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cached"
	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// informer is that of one namespace, with what was told of its objects.
type informer struct {
	*watch.Handle
	told *ledger
}

// start opens the informer of a namespace. A silent one notes events, and tells of none.
func (f *Feed) start(ctx context.Context, served catalog.Resource, namespace string, silent bool) (*informer, error) {
	src := f.settings.Source
	src.GVR, src.Kind, src.Namespace = served.GVR, served.Kind, namespace
	l := newLedger(f.settings.On, silent)
	h, err := f.settings.Watches.Open(ctx, src, l)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", f.settings.Name, err)
	}
	return &informer{h, l}, nil
}

// close closes the namespace's informer, which it returns, and that of a successor.
func (f *Feed) close(namespace string) *informer {
	f.mu.Lock()
	closed := f.informers[namespace]
	delete(f.informers, namespace)
	var next *informer
	if f.next != nil {
		next = f.next.informers[namespace]
		delete(f.next.informers, namespace)
	}
	f.mu.Unlock()
	closed.Close()
	if next != nil {
		next.Close()
	}
	return closed
}

// opened are the namespaces that have an informer, sorted.
func (f *Feed) opened() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.informers))
}

// Informer returns the informer that has the namespace's objects, nil when there is none. For the empty
// namespace it is the one of all namespaces, and of objects without.
func (f *Feed) Informer(namespace string) *watch.Handle {
	if i := f.informer(namespace); i != nil {
		return i.Handle
	}
	return nil
}

func (f *Feed) informer(namespace string) *informer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if all := f.informers[""]; all != nil {
		return all
	}
	return f.informers[namespace]
}

// Informers returns the informers that have objects of the namespace, or all of them when it is empty.
func (f *Feed) Informers(namespace string) []*watch.Handle {
	if namespace != "" {
		if h := f.Informer(namespace); h != nil {
			return []*watch.Handle{h}
		}
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]*watch.Handle, 0, len(f.informers))
	for _, i := range f.informers {
		out = append(out, i.Handle)
	}
	return out
}

// Behind reports whether the API server's versions have gone back, and some of the feed's caches may be those of before.
func (f *Feed) Behind() bool {
	return slices.ContainsFunc(f.Informers(""), (*watch.Handle).Behind)
}

// Get returns what the cache has under the key.
func (f *Feed) Get(key cache.ObjectName) (*cached.Object, bool) {
	h := f.Informer(key.Namespace)
	if h == nil {
		return nil, false
	}
	return h.Object(key)
}

// Telling reports whether an object that the cache does not have any more is not told to be gone yet.
func (f *Feed) Telling(key cache.ObjectName) bool {
	i := f.informer(key.Namespace)
	return i != nil && i.told.names(key)
}

// Objects returns what the cache has of a namespace, or of all when it is empty, in no order.
func (f *Feed) Objects(namespace string) []*cached.Object {
	var out []*cached.Object
	for _, h := range f.Informers(namespace) {
		for _, o := range h.Objects() {
			if namespace == "" || o.GetNamespace() == namespace {
				out = append(out, o)
			}
		}
	}
	return out
}

// OwnedBy returns the objects that the owner of this uid controls, or that have its label, in no order.
func (f *Feed) OwnedBy(owner string) []*cached.Object {
	var out []*cached.Object
	for _, h := range f.Informers("") {
		out = append(out, h.OwnedBy(owner)...)
	}
	return out
}

// Stats returns how many objects the cache has, and when the server was last heard of.
func (f *Feed) Stats() (objects int, last time.Time) {
	for _, h := range f.Informers("") {
		objects += h.Len()
		if at := h.State().LastEvent; at.After(last) {
			last = at
		}
	}
	return objects, last
}

// Whole reports whether the cache has every object of a resource in the namespace, or everywhere when it is
// empty, with all that is in them, and is told of changes.
func (f *Feed) Whole(gvr schema.GroupVersionResource, namespace string) bool {
	src := f.settings.Source
	compact := src.Keep == "" && src.Notes == "" && (src.Profile == "" || src.Profile == dsl.CacheCompact)
	if !compact || src.LabelSelector != "" || src.FieldSelector != "" || f.Resource().GVR != gvr {
		return false
	}
	h := f.Informer(namespace)
	return h != nil && h.Synced() && !h.State().Blind
}

// Chooses reports whether objects may leave what the feed brings in although they live.
func (f *Feed) Chooses() bool {
	return f.settings.Source.LabelSelector != "" || f.settings.Source.FieldSelector != "" || f.settings.Scope.Live()
}

// ledger stands between an informer and those who are told of its events, and knows what they were
// told is there. An informer that is closed throws away the events that it has not told yet, and its
// store does not have the objects any more: without a ledger these deletions would be lost.
type ledger struct {
	on func(watch.Event)

	// mu is held while on runs, so that what is told of one object comes in order.
	mu      sync.Mutex
	present map[types.UID]*cached.Object
	// silent: events are noted and not told; see follow.
	silent bool
}

func newLedger(on func(watch.Event), silent bool) *ledger {
	return &ledger{on: on, present: map[types.UID]*cached.Object{}, silent: silent}
}

// OnEvent records an event of the informer, and passes it on.
func (l *ledger) OnEvent(ev watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ev.Kind != watch.Deleted:
		l.present[ev.UID] = ev.Object
	case ev.UID == "": // of one that nobody saw go, only the name may be known
		maps.DeleteFunc(l.present, func(_ types.UID, o *cached.Object) bool { return cache.MetaObjectToName(o) == ev.Key })
	default:
		delete(l.present, ev.UID)
	}
	if !l.silent {
		l.on(ev)
	}
}

// closeAsDeleted tells of the deletion of everything that is there still. The informer must be closed.
func (l *ledger) closeAsDeleted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.present {
		l.on(deletion(o))
	}
	clear(l.present)
}

// follow takes over from the ledger of an informer that showed the same objects before, and is
// closed: it tells what differs between what that one told and what there is, and all events from here
// on. What did not change is told as if it had been there when the owner came: who looks at it may
// see another form of it.
func (l *ledger) follow(before *ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = false
	for uid, o := range l.present {
		switch was := before.present[uid]; {
		case was == nil:
			l.on(watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: uid, Object: o})
		case was.GetResourceVersion() != o.GetResourceVersion():
			l.on(watch.Event{Kind: watch.Updated, Key: cache.MetaObjectToName(o), UID: uid, Object: o, Old: was})
		default:
			l.on(watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: uid, Initial: true, Object: o})
		}
	}
	for uid, o := range before.present {
		if l.present[uid] == nil {
			l.on(deletion(o))
		}
	}
}

// names reports whether an object of that name was told to be there, and not that it is gone. While
// something is being told, it may be that; nobody waits for the answer.
func (l *ledger) names(key cache.ObjectName) bool {
	if !l.mu.TryLock() {
		return true
	}
	defer l.mu.Unlock()
	for _, o := range l.present {
		if cache.MetaObjectToName(o) == key {
			return true
		}
	}
	return false
}

// deletion is the event of an object that nobody saw go.
func deletion(o *cached.Object) watch.Event {
	return watch.Event{Kind: watch.Deleted, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Unseen: true, Object: o}
}

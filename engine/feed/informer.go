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

// informer is the informer of one namespace, with the ledger of its events.
type informer struct {
	*watch.Handle
	ledger *ledger
}

// start opens the informer of a namespace. A silent one records events and does not deliver them.
func (f *Feed) start(ctx context.Context, served catalog.Resource, namespace string, silent bool) (*informer, error) {
	src := f.settings.Source
	src.GVR, src.Kind, src.Namespace = served.GVR, served.Kind, namespace
	l := newLedger(f.settings.Handler, silent)
	h, err := f.cluster.Watches.Open(ctx, src, l)
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

// Informer returns the informer with the namespace's objects, or nil. For the empty namespace it returns the informer of all
// namespaces, or of a cluster-scoped resource.
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

// Behind reports whether the API server's versions have gone back, and some informer has not listed again.
func (f *Feed) Behind() bool {
	return slices.ContainsFunc(f.Informers(""), (*watch.Handle).Behind)
}

// Get returns the object that the cache has under the key.
func (f *Feed) Get(key cache.ObjectName) (*cached.Object, bool) {
	h := f.Informer(key.Namespace)
	if h == nil {
		return nil, false
	}
	return h.Object(key)
}

// Telling reports whether the deletion of an object, which the cache no longer has, is not delivered yet.
func (f *Feed) Telling(key cache.ObjectName) bool {
	i := f.informer(key.Namespace)
	return i != nil && i.ledger.names(key)
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

// Stats returns the number of objects in the cache, and the time of the last event.
func (f *Feed) Stats() (objects int, last time.Time) {
	for _, h := range f.Informers("") {
		objects += h.Len()
		if at := h.State().LastEvent; at.After(last) {
			last = at
		}
	}
	return objects, last
}

// Whole reports whether the cache has all objects of a resource in the namespace, or in all when it is empty, with all fields, and
// follows changes.
func (f *Feed) Whole(gvr schema.GroupVersionResource, namespace string) bool {
	src := f.settings.Source
	compact := src.Keep == "" && src.Notes == "" && (src.Profile == "" || src.Profile == dsl.CacheCompact)
	if !compact || src.LabelSelector != "" || src.FieldSelector != "" || f.Resource().GVR != gvr {
		return false
	}
	h := f.Informer(namespace)
	return h != nil && h.Synced() && !h.State().Blind
}

// Chooses reports whether an object may leave the cache without being deleted.
func (f *Feed) Chooses() bool {
	return f.settings.Source.LabelSelector != "" || f.settings.Source.FieldSelector != "" || f.cluster.Scope.Live()
}

// ledger delivers the events of an informer to the handler, and keeps the objects that the handler knows of. A closed informer drops
// its pending events, and its store no longer has the objects: without the ledger their deletions would be lost.
type ledger struct {
	handler watch.Handler

	// mu is held while the handler runs, so that the events of one object are delivered in order.
	mu      sync.Mutex
	present map[types.UID]*cached.Object
	// silent is true while events are recorded and not delivered; see follow.
	silent bool
}

func newLedger(on watch.Handler, silent bool) *ledger {
	return &ledger{handler: on, present: map[types.UID]*cached.Object{}, silent: silent}
}

// OnEvent records an event of the informer, and passes it on.
func (l *ledger) OnEvent(ev watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ev.Kind != watch.Deleted:
		l.present[ev.UID] = ev.Object
	case ev.UID == "": // the watch missed the deletion, and only the name is known
		maps.DeleteFunc(l.present, func(_ types.UID, o *cached.Object) bool { return cache.MetaObjectToName(o) == ev.Key })
	default:
		delete(l.present, ev.UID)
	}
	if !l.silent {
		l.handler.OnEvent(ev)
	}
}

// closeAsDeleted delivers the deletion of all remaining objects. The informer must be closed.
func (l *ledger) closeAsDeleted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range l.present {
		l.handler.OnEvent(deletion(o))
	}
	clear(l.present)
}

// follow continues the ledger of a closed informer with the same objects. It delivers the differences between the two, and all events
// from then on. Unchanged objects are delivered as initial ones, because the handler may see them in another form.
func (l *ledger) follow(before *ledger) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = false
	for uid, o := range l.present {
		switch was := before.present[uid]; {
		case was == nil:
			l.handler.OnEvent(watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: uid, Object: o})
		case was.GetResourceVersion() != o.GetResourceVersion():
			l.handler.OnEvent(watch.Event{Kind: watch.Updated, Key: cache.MetaObjectToName(o), UID: uid, Object: o, Old: was})
		default:
			l.handler.OnEvent(watch.Event{Kind: watch.Added, Key: cache.MetaObjectToName(o), UID: uid, Initial: true, Object: o})
		}
	}
	for uid, o := range before.present {
		if l.present[uid] == nil {
			l.handler.OnEvent(deletion(o))
		}
	}
}

// names reports whether the handler knows of an object of that name. It does not wait for an event that is being delivered, and
// returns true then, because the event may be about the object.
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

// deletion returns the event of a deletion that the watch missed.
func deletion(o *cached.Object) watch.Event {
	return watch.Event{Kind: watch.Deleted, Key: cache.MetaObjectToName(o), UID: o.GetUID(), Unseen: true, Object: o}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// successor is the version that a feed switches to when its resource is served in another version only. It has
// the informers of the namespaces that have not switched yet.
type successor struct {
	served    catalog.Resource
	informers map[string]*informer
}

// move goes over to the version in which the resource is served now. Its objects are the same ones:
// the informers of the old version keep what they have until those of the new one have listed. A
// namespace that cannot be listed, as for a missing right, keeps none of the others back.
func (f *Feed) move(ctx context.Context, served catalog.Resource) {
	next := f.succession(served)
	var ready []string
	fault, listing := error(nil), false
	for _, ns := range f.trailing(served) {
		h, err := f.join(ctx, next, ns)
		switch {
		case err != nil:
			f.fail(err)
			return
		case h.State().Synced && h.WaitSynced(ctx): // the last callback is about to return
			ready = append(ready, ns)
		case h.State().Fault != nil:
			fault = h.State().Fault
		default:
			listing = true
		}
	}
	now := f.Resource().GVR
	switch {
	case now == served.GVR:
		f.swap(next, ready) // the others have states of their own
	case listing:
		f.set(Unserved, fmt.Sprintf("version %s is served no more; version %s is being listed", now.Version, served.GVR.Version))
	case len(ready) == 0 && fault != nil:
		f.fail(fault)
	default:
		f.enter(ctx, next, ready)
	}
}

// enter makes the successor's version that of the feed.
func (f *Feed) enter(ctx context.Context, next *successor, ready []string) {
	observes, err := f.observable(ctx, next.served)
	if err != nil {
		f.fail(err)
		return
	}
	f.mu.Lock()
	f.served, f.observes = next.served, observes
	f.mu.Unlock()
	f.swap(next, ready)
	f.settings.Log.Info("resource is watched in another version", "version", next.served.GVR.Version)
	f.Nudge()
}

// catchUp goes on with the namespaces that have not gone over to the version of the feed.
func (f *Feed) catchUp(ctx context.Context) {
	if now := f.Resource(); len(f.trailing(now)) > 0 {
		f.move(ctx, now)
	}
}

// trailing returns the namespaces whose informers are of another version than the one that is served.
func (f *Feed) trailing(served catalog.Resource) []string {
	return slices.DeleteFunc(f.opened(), func(ns string) bool { return f.Informer(ns).Source().GVR == served.GVR })
}

// newest returns the namespace's informer that lists what is served now. It is not the one whose cache
// is read as long as it has not listed.
func (f *Feed) newest(namespace string) *watch.Handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := f.informers[namespace]
	if f.next != nil && f.next.served.GVR == f.served.GVR && f.next.informers[namespace] != nil {
		found = f.next.informers[namespace]
	}
	if found == nil {
		return nil
	}
	return found.Handle
}

// succession returns the successor for what is served, making it.
func (f *Feed) succession(served catalog.Resource) *successor {
	f.abandon(served.GVR)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == nil {
		f.next = &successor{served: served, informers: map[string]*informer{}}
	}
	return f.next
}

// abandon gives a successor up that is not of the version that is served.
func (f *Feed) abandon(served schema.GroupVersionResource) {
	f.mu.Lock()
	next := f.next
	if next == nil || next.served.GVR == served {
		f.mu.Unlock()
		return
	}
	f.next = nil
	f.mu.Unlock()
	for _, i := range next.informers {
		i.Close()
	}
}

// join returns the successor's informer of a namespace, opening it.
func (f *Feed) join(ctx context.Context, next *successor, namespace string) (*informer, error) {
	if opened := next.informers[namespace]; opened != nil {
		return opened, nil
	}
	opened, err := f.start(ctx, next.served, namespace, true)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next.informers[namespace] = opened
	return opened, nil
}

// swap makes the successor's informers of these namespaces those of the feed, and delivers the changes between the two.
func (f *Feed) swap(next *successor, namespaces []string) {
	for _, ns := range namespaces {
		f.mu.Lock()
		before, now := f.informers[ns], next.informers[ns]
		f.informers[ns] = now
		delete(next.informers, ns)
		f.mu.Unlock()
		before.Close()
		now.ledger.follow(before.ledger)
	}
}

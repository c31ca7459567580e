// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/watch"
)

// successor is what a feed goes over to when its resource is served in another version only. It has
// the informers of the namespaces that have not gone over yet.
type successor struct {
	served  catalog.Resource
	handles map[string]*watch.Handle
	ledgers map[string]*ledger
}

// move goes over to the version in which the resource is served now. Its objects are the same ones:
// the informers of the old version keep what they have until those of the new one have listed. A
// namespace that cannot be listed, as for a missing right, keeps none of the others back.
func (f *feed) move(ctx context.Context, served catalog.Resource) {
	next := f.succession(served)
	var ready []string
	fault, listing := error(nil), false
	for _, ns := range f.trailing(served) {
		h, err := f.join(ctx, next, ns)
		switch {
		case err != nil:
			f.fail(err)
			return
		case h.State().Synced && h.WaitSynced(ctx) == nil: // the last callback is about to return
			ready = append(ready, ns)
		case h.State().Fault != nil:
			fault = h.State().Fault
		default:
			listing = true
		}
	}
	if f.resource().GVR == served.GVR {
		f.swap(next, ready) // how it is with the others is said of their namespaces
		return
	}
	switch {
	case listing:
		f.become(hindrance{phase: phaseMissing, text: fmt.Sprintf("version %s is served no more; version %s is being listed", f.resource().GVR.Version, served.GVR.Version)})
	case len(ready) == 0 && fault != nil:
		f.fail(fault)
	default:
		f.enter(ctx, next, ready)
	}
}

// enter makes the successor's version that of the feed.
func (f *feed) enter(ctx context.Context, next *successor, ready []string) {
	observes, err := f.observable(ctx, next.served)
	if err != nil {
		f.fail(err)
		return
	}
	f.mu.Lock()
	f.served, f.observes = next.served, observes
	f.mu.Unlock()
	f.swap(next, ready)
	f.log.Info("resource is watched in another version", "version", next.served.GVR.Version)
	f.nudge()
}

// catchUp goes on with the namespaces that have not gone over to the version of the feed.
func (f *feed) catchUp(ctx context.Context) {
	if now := f.resource(); len(f.trailing(now)) > 0 {
		f.move(ctx, now)
	}
}

// trailing returns the namespaces whose informers are of another version than the one that is served.
func (f *feed) trailing(served catalog.Resource) []string {
	var out []string
	for _, ns := range f.opened() {
		if f.handle(ns).Source().GVR != served.GVR {
			out = append(out, ns)
		}
	}
	return out
}

// newest returns the namespace's informer that lists what is served now. It is not the one whose cache
// is read as long as it has not listed.
func (f *feed) newest(namespace string) *watch.Handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil && f.next.served.GVR == f.served.GVR && f.next.handles[namespace] != nil {
		return f.next.handles[namespace]
	}
	return f.handles[namespace]
}

// succession returns the successor for what is served, making it.
func (f *feed) succession(served catalog.Resource) *successor {
	if f.next != nil && f.next.served.GVR == served.GVR {
		return f.next
	}
	f.dropNext()
	next := &successor{served: served, handles: map[string]*watch.Handle{}, ledgers: map[string]*ledger{}}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = next
	return next
}

// join returns the successor's informer of a namespace, opening it.
func (f *feed) join(ctx context.Context, next *successor, namespace string) (*watch.Handle, error) {
	if h := next.handles[namespace]; h != nil {
		return h, nil
	}
	src := f.source
	src.GVR, src.Kind, src.Namespace = next.served.GVR, next.served.Kind, namespace
	l := newLedger(f.on, true)
	h, err := f.watches.Open(ctx, src, l.take)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", f.name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	next.handles[namespace], next.ledgers[namespace] = h, l
	return h, nil
}

// swap makes the successor's informers of these namespaces those of the feed, and tells what has
// changed meanwhile.
func (f *feed) swap(next *successor, namespaces []string) {
	for _, ns := range namespaces {
		f.mu.Lock()
		h, before, now := f.handles[ns], f.ledgers[ns], next.ledgers[ns]
		f.handles[ns], f.ledgers[ns] = next.handles[ns], now
		delete(next.handles, ns)
		delete(next.ledgers, ns)
		f.mu.Unlock()
		h.Close()
		left := missing(before, now)
		now.follow(before)
		for _, o := range left {
			f.on(deletion(o))
		}
	}
}

// abandon gives a successor up that is not of the version that is served.
func (f *feed) abandon() {
	if f.next != nil && f.next.served.GVR != f.resource().GVR {
		f.dropNext()
	}
}

// dropNext gives a successor up.
func (f *feed) dropNext() {
	f.mu.Lock()
	next := f.next
	f.next = nil
	f.mu.Unlock()
	if next == nil {
		return
	}
	for _, h := range next.handles {
		h.Close()
	}
}

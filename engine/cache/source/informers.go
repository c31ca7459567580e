// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cache/watch"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// informers has one informer for each namespace, and a second one while the resource switches to another version. Only
// the source's goroutine opens and closes them.
type informers struct {
	at      *Location
	watches *watch.Set
	source  watch.Source
	handler watch.Handler

	mu sync.Mutex
	by map[string]*informer
	// next is the version that the source switches to, or nil. Only the source's goroutine sets it.
	next *successor
}

// informer is the informer of one namespace, with the ledger of its events.
type informer struct {
	*watch.Handle
	ledger *ledger
}

// successor is the version that a source switches to, if its resource is served only in another version. It has the
// informers of the namespaces that have not switched yet.
type successor struct {
	served discovery.Resource
	by     map[string]*informer
}

// open opens informers for the namespaces that may be listed and watched, and closes the others.
func (c *informers) open(ctx context.Context, namespaces []string, missing missingVerbs) error {
	for _, ns := range c.opened() {
		if !slices.Contains(namespaces, ns) {
			c.close(ns).ledger.closeAsDeleted()
		}
	}
	for _, ns := range namespaces {
		if c.of(ns) != nil || !missing.reads(ns) {
			continue
		}
		c.mu.Lock() // the reconcile that the first event starts must find the informer
		opened, err := c.start(ctx, c.at.Resource(), ns, false)
		if err == nil {
			c.by[ns] = opened
		}
		c.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// start opens the informer of a namespace. A silent one records events and does not deliver them.
func (c *informers) start(ctx context.Context, served discovery.Resource, namespace string, silent bool) (*informer, error) {
	src := c.source
	src.GVR, src.Kind, src.Namespace = served.GVR, served.Kind, namespace
	l := newLedger(c.handler, silent)
	h, err := c.watches.Open(ctx, src, l)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", c.at.name, err)
	}
	return &informer{h, l}, nil
}

// close closes the namespace's informer, which it returns, and the successor's.
func (c *informers) close(namespace string) *informer {
	c.mu.Lock()
	closed := c.by[namespace]
	delete(c.by, namespace)
	var next *informer
	if c.next != nil {
		next = c.next.by[namespace]
		delete(c.next.by, namespace)
	}
	c.mu.Unlock()
	closed.Close()
	if next != nil {
		next.Close()
	}
	return closed
}

// opened returns the namespaces that have an informer, sorted.
func (c *informers) opened() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.by))
}

// of returns the informer with the namespace's objects, or nil. It may be the informer of all namespaces.
func (c *informers) of(namespace string) *informer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.by[""]; all != nil {
		return all
	}
	return c.by[namespace]
}

// all returns the handles of the informers, in no order.
func (c *informers) all() []*watch.Handle {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*watch.Handle, 0, len(c.by))
	for _, i := range c.by {
		out = append(out, i.Handle)
	}
	return out
}

// covers returns the namespace of the informer with a namespace's objects. It is empty for the informer of all
// namespaces. Watched is false without an informer.
func (c *informers) covers(namespace string) (of string, watched bool) {
	i := c.of(namespace)
	if i == nil {
		return "", false
	}
	return i.Source().Namespace, true
}

// newest returns the namespace's informer for the version that is served now, or nil. Until it has listed, the cache of
// another informer is read.
func (c *informers) newest(namespace string) *watch.Handle {
	now := c.at.Resource().GVR
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.by[namespace]
	if c.next != nil && c.next.served.GVR == now && c.next.by[namespace] != nil {
		found = c.next.by[namespace]
	}
	if found == nil {
		return nil
	}
	return found.Handle
}

// unfound reports whether a list or a watch of one of the informers was answered with 404.
func (c *informers) unfound() bool {
	return slices.ContainsFunc(c.opened(), func(ns string) bool {
		h := c.newest(ns)
		return h.Source().GVR == c.at.Resource().GVR && apierrors.IsNotFound(h.State().Fault)
	})
}

// delivered reports whether the first listings are complete and delivered. It waits for the handler.
func (c *informers) delivered(ctx context.Context) bool {
	all := c.all()
	return len(all) > 0 && !slices.ContainsFunc(all, func(h *watch.Handle) bool {
		return !h.State().Synced || !h.WaitSynced(ctx)
	})
}

// failures returns the number of failures of the informers.
func (c *informers) failures() (n int) {
	for _, h := range c.all() {
		n += h.State().Failures
	}
	return n
}

// trailing returns the namespaces whose informers have another version than the served one.
func (c *informers) trailing(served discovery.Resource) []string {
	return slices.DeleteFunc(c.opened(), func(ns string) bool { return c.of(ns).Source().GVR == served.GVR })
}

// awaits reports whether the source switches to this resource.
func (c *informers) awaits(gvr schema.GroupVersionResource) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.next != nil && c.next.served.GVR == gvr
}

// succession returns the successor for a served version, and creates it if there is none.
func (c *informers) succession(served discovery.Resource) *successor {
	c.abandon(served.GVR)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		c.next = &successor{served: served, by: map[string]*informer{}}
	}
	return c.next
}

// abandon closes a successor of another version than the served one.
func (c *informers) abandon(served schema.GroupVersionResource) {
	c.mu.Lock()
	next := c.next
	if next == nil || next.served.GVR == served {
		c.mu.Unlock()
		return
	}
	c.next = nil
	c.mu.Unlock()
	for _, i := range next.by {
		i.Close()
	}
}

// join returns the successor's informer of a namespace, and opens it if there is none.
func (c *informers) join(ctx context.Context, next *successor, namespace string) (*informer, error) {
	if opened := next.by[namespace]; opened != nil {
		return opened, nil
	}
	opened, err := c.start(ctx, next.served, namespace, true)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	next.by[namespace] = opened
	return opened, nil
}

// swap replaces the informers of these namespaces by the successor's, and delivers the changes between the two.
func (c *informers) swap(next *successor, namespaces []string) {
	for _, ns := range namespaces {
		c.mu.Lock()
		before, now := c.by[ns], next.by[ns]
		c.by[ns] = now
		delete(next.by, ns)
		c.mu.Unlock()
		before.Close()
		now.ledger.follow(before.ledger)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/claim"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/fence"
)

// children is dsl.Children for one attempt. Without a span, as filters have it, it only reads.
type children struct {
	pass *pass
	span *fence.Span
	// attempt is whose it is, empty for filters, and turn how many of the pass have begun with it.
	attempt claim.Attempt
	turn    int
}

var _ dsl.Children = (*children)(nil)

// write returns the context of a write.
func (c *children) write(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if c.span == nil {
		return nil, nil, errors.New("writing: only a handler can, not a filter")
	}
	return c.span.Write(ctx)
}

// read returns the context of a request that reads.
func (c *children) read(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.span == nil {
		return ctx, func() {}
	}
	return c.span.Read(ctx)
}

// Get returns one child from the cache, or as this pass has applied it.
func (c *children) Get(resource, name string) (*unstructured.Unstructured, error) {
	f, err := c.declared(resource)
	if err != nil {
		return nil, err
	}
	found := c.pass.cached(f, c.key(f, name))
	if found == nil || !c.pass.owner().Has(found) {
		return nil, nil
	}
	return found, nil
}

// key is the key of a child by its name, or by namespace/name where it is not in the owner's.
func (c *children) key(f *feed.Feed, name string) cache.ObjectName {
	namespace, rest, both := strings.Cut(name, "/")
	switch {
	case both:
		return cache.ObjectName{Namespace: namespace, Name: rest}
	case f.Resource().Namespaced:
		return cache.ObjectName{Namespace: c.pass.object.GetNamespace(), Name: name}
	}
	return cache.ObjectName{Name: name}
}

// List returns the children of a resource from the cache, or as this pass has applied them.
func (c *children) List(resource string) ([]*unstructured.Unstructured, error) {
	f, err := c.declared(resource)
	if err != nil {
		return nil, err
	}
	out, owner := c.pass.tied(f), c.pass.owner()
	return slices.DeleteFunc(out, func(o *unstructured.Unstructured) bool { return !owner.Has(o) }), nil
}

// Delete deletes a child.
func (c *children) Delete(ctx context.Context, resource, name string) error {
	ctx, done, err := c.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	found, err := c.Get(resource, name)
	if err != nil || found == nil {
		return err
	}
	f, err := c.declared(resource)
	if err != nil {
		return err
	}
	return c.deleteChild(ctx, f, found)
}

// declared returns the feed of an owned resource, once the cache has it.
func (c *children) declared(resource string) (*feed.Feed, error) {
	name, err := dsl.ParseResourceName(resource)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	for _, f := range c.pass.r.children {
		if f.Is(name) {
			return f, f.Readable(c.pass.object.GetNamespace())
		}
	}
	return nil, dsl.Permanent(fmt.Errorf("reading children: %s is not declared with owns", resource))
}

// owner is the handled object as the owner of children.
func (p *pass) owner() child.Owner {
	p.mu.Lock()
	defer p.mu.Unlock()
	return child.Owner{
		Object: p.object, Namespaced: p.r.own.Resource().Namespaced, Keys: child.KeysOf(p.r.engine.op),
		Record: p.ties.record, Closed: p.ties.closed,
	}
}

// childID names a child within a pass.
type childID struct {
	resource string
	key      cache.ObjectName
}

func idOf(served fmt.Stringer, key cache.ObjectName) childID { return childID{served.String(), key} }

// tied returns the objects of a feed that may be children of the object, each as this pass has
// applied it or as the cache has it, sorted.
func (p *pass) tied(f *feed.Feed) []*unstructured.Unstructured {
	names := map[cache.ObjectName]bool{}
	for _, mark := range p.owner().Marks() {
		for _, o := range f.OwnedBy(mark) {
			names[nameOf(o)] = true
		}
	}
	p.mu.Lock()
	for id := range p.applied {
		if id.resource == f.Resource().GVR.String() {
			names[id.key] = true
		}
	}
	p.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, key := range slices.SortedFunc(maps.Keys(names), func(a, b cache.ObjectName) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if o := p.cached(f, key); o != nil {
			out = append(out, o)
		}
	}
	return out
}

// cached returns the object under the key: as this pass applied it, or as the cache has it.
func (p *pass) cached(f *feed.Feed, key cache.ObjectName) *unstructured.Unstructured {
	if o := p.asApplied(idOf(f.Resource().GVR, key)); o != nil {
		return o
	}
	if o, found := f.Get(key); found {
		return o.Tree()
	}
	return nil
}

// asApplied returns a child as this pass has applied it, nil when it has not.
func (p *pass) asApplied(id childID) *unstructured.Unstructured {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.applied[id]; o != nil {
		return o.DeepCopy()
	}
	return nil
}

// hold keeps a child as this pass leaves it.
func (p *pass) hold(id childID, o *unstructured.Unstructured) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.applied[id] = o.DeepCopy()
}

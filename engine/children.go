// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// children is dsl.Children for one attempt.
type children struct {
	pass *pass
	span *span
}

var _ dsl.Children = (*children)(nil)

// Apply makes a child as desired says.
func (c *children) Apply(ctx context.Context, desired any, _ ...dsl.ChildSpec) (*unstructured.Unstructured, error) {
	ctx, done, err := c.span.write(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	p := c.pass
	plain, err := child.Plain(desired)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	f, err := p.r.childFeed(plain.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	owner := child.Owner{Object: p.object, Namespaced: p.r.own.resource().Namespaced}
	whole, err := owner.Desired(plain, f.resource().Namespaced, p.r.engine.op.AppliedAnnotation())
	if err != nil {
		return nil, err
	}
	key := nameOf(whole)
	if p.memory.settled == nil {
		p.memory.settled = map[string]string{}
	}
	applier := child.Applier{
		Owner: owner, Manager: p.r.engine.op.Name,
		AppliedKey: p.r.engine.op.AppliedAnnotation(), Settled: p.memory.settled,
	}
	result, sent, err := applier.Apply(ctx, p.r.engine.writer(f.resource().GVR, key.Namespace), whole, p.cached(f, key))
	if sent {
		p.wrote(f, result)
	}
	if err != nil {
		return nil, err
	}
	return result, nil
}

// Stale reports whether Apply would change a child.
func (c *children) Stale(context.Context, any, dsl.ChildSpec) (bool, *unstructured.Unstructured, error) {
	return false, nil, nil
}

// All returns the children that were applied with names.
func (c *children) All() ([]dsl.ChildObject, error) { return nil, nil }

// Remove takes a child away.
func (c *children) Remove(context.Context, dsl.ChildObject) error { return nil }

// Get returns one child from the cache, or as this pass has applied it.
func (c *children) Get(resource, name string) (*unstructured.Unstructured, error) {
	f, err := c.declared(resource)
	if err != nil {
		return nil, err
	}
	found := c.pass.cached(f, c.key(f, name))
	if found == nil || !metav1.IsControlledBy(found, c.pass.object) {
		return nil, nil
	}
	return found, nil
}

// key is the key of a child by its name, or by namespace/name where the owner has no namespace.
func (c *children) key(f *feed, name string) cache.ObjectName {
	namespace, rest, both := strings.Cut(name, "/")
	switch {
	case both:
		return cache.ObjectName{Namespace: namespace, Name: rest}
	case f.resource().Namespaced:
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
	names := map[cache.ObjectName]bool{}
	for _, o := range f.ownedBy(c.pass.object.GetUID()) {
		names[nameOf(o)] = true
	}
	for id := range c.pass.applied {
		if id.feed == f {
			names[id.key] = true
		}
	}
	var out []*unstructured.Unstructured
	for key := range names {
		if o := c.pass.cached(f, key); o != nil && metav1.IsControlledBy(o, c.pass.object) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return out, nil
}

// Delete deletes a child.
func (c *children) Delete(ctx context.Context, resource, name string) error {
	ctx, done, err := c.span.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	found, err := c.Get(resource, name)
	if err != nil || found == nil || found.GetDeletionTimestamp() != nil {
		return err
	}
	f, err := c.declared(resource)
	if err != nil {
		return err
	}
	uid, background := found.GetUID(), metav1.DeletePropagationBackground
	err = c.pass.r.engine.writer(f.resource().GVR, found.GetNamespace()).Delete(ctx, found.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another object has the name: the cache will tell
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", name, err)
	}
	delete(c.pass.applied, childID{f, nameOf(found)})
	c.pass.awaitGone(f, nameOf(found), uid)
	c.pass.r.engine.metrics.Written(c.pass.r.name, ops.Child)
	return nil
}

// declared returns the feed of an owned resource, once the cache has it.
func (c *children) declared(resource string) (*feed, error) {
	name, err := dsl.ParseResourceName(resource)
	if err != nil {
		return nil, dsl.Permanent(err)
	}
	for _, f := range c.pass.r.children {
		if f.name == name {
			return f, f.readable()
		}
	}
	return nil, dsl.Permanent(fmt.Errorf("reading children: %s is not declared with owns", resource))
}

// childFeed returns the feed of the owned resource that serves this kind.
func (r *resource) childFeed(kind schema.GroupVersionKind) (*feed, error) {
	for _, f := range r.children {
		served := f.resource()
		if f.isKnown() && served.Kind == kind.Kind && served.GVR.Group == kind.Group {
			return f, f.readable()
		}
	}
	for _, f := range r.children {
		if !f.isKnown() && f.name.Group == kind.Group {
			return nil, fmt.Errorf("applying %s: %s is %s: %s", kind.Kind, f.name, f.health().phase, f.health().message)
		}
	}
	return nil, dsl.Permanent(fmt.Errorf("applying %s: no resource of that kind is declared with owns", kind.Kind))
}

// readable reports why the cache cannot be asked, if so.
func (f *feed) readable() error {
	if h := f.health(); len(f.opened()) == 0 {
		return fmt.Errorf("reading %s: it is %s: %s", f.name, h.phase, h.message)
	}
	for _, h := range f.all() {
		if !h.Synced() {
			return fmt.Errorf("reading %s: its first listing is not complete", f.name)
		}
	}
	return nil
}

// childID names a child within a pass.
type childID struct {
	feed *feed
	key  cache.ObjectName
}

// cached returns the object under the key: as this pass applied it, or as the cache has it.
func (p *pass) cached(f *feed, key cache.ObjectName) *unstructured.Unstructured {
	if o := p.applied[childID{f, key}]; o != nil {
		return o.DeepCopy()
	}
	if o, found := f.object(key); found {
		return o.Tree()
	}
	return nil
}

// wrote notes a child as it was written: the next pass waits for it, and its event is no news.
func (p *pass) wrote(f *feed, result *unstructured.Unstructured) {
	key := nameOf(result)
	p.applied[childID{f, key}] = result
	p.await(f, result)
	p.r.echo(p.key, result.GetUID(), result.GetResourceVersion())
	p.r.engine.metrics.Written(p.r.name, ops.Child)
}

// wroteOther notes a write to an object that is no child; the next pass waits for it where the
// resource's own informers show it.
func (p *pass) wroteOther(gvr schema.GroupVersionResource, o *unstructured.Unstructured) {
	p.r.engine.metrics.Written(p.r.name, ops.Other)
	for _, f := range p.r.feeds() {
		h := f.handle(o.GetNamespace())
		if f.resource().GVR == gvr && h != nil && h.Selects(nameOf(o), o.GetLabels()) {
			p.await(f, o)
		}
	}
}

// deletedOther is wroteOther for a deletion: what the cache still has is waited for.
func (p *pass) deletedOther(gvr schema.GroupVersionResource, key cache.ObjectName) {
	p.r.engine.metrics.Written(p.r.name, ops.Other)
	for _, f := range p.r.feeds() {
		if o, found := f.object(key); found && f.resource().GVR == gvr {
			p.awaitGone(f, key, o.GetUID())
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// All returns the children that were applied with names. It fails rather than leave some out, for
// what it does not return is taken to be gone.
func (c *children) All() ([]dsl.ChildObject, error) {
	owner := c.pass.owner()
	var out []dsl.ChildObject
	for _, f := range c.pass.r.children {
		if err := f.Complete(); err != nil {
			return nil, fmt.Errorf("listing children: %w", err)
		}
		if c.pass.r.repeats(f) {
			continue
		}
		for _, o := range c.pass.tied(f) {
			if owner.Has(o) {
				out = appendNamed(out, owner, o)
			}
		}
	}
	for _, o := range c.pass.forgotten(owner) {
		out = appendNamed(out, owner, o)
	}
	slices.SortFunc(out, func(a, b dsl.ChildObject) int {
		return cmp.Or(cmp.Compare(a.Handler, b.Handler), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Object.GetNamespace(), b.Object.GetNamespace()), cmp.Compare(a.Object.GetName(), b.Object.GetName()),
			cmp.Compare(a.Object.GetKind(), b.Object.GetKind()))
	})
	return out, nil
}

// Missed reports whether objects say that they are children, and there is no record.
func (c *children) Missed() (bool, error) {
	if c.pass.owner().Record != nil {
		return false, nil
	}
	for _, f := range c.pass.r.children {
		if err := f.Complete(); err != nil {
			return false, fmt.Errorf("listing children: %w", err)
		}
	}
	return len(c.pass.unlisted()) > 0, nil
}

func appendNamed(out []dsl.ChildObject, owner child.Owner, o *unstructured.Unstructured) []dsl.ChildObject {
	if spec, named := owner.Spec(o); named {
		return append(out, dsl.ChildObject{ChildSpec: spec, Object: o})
	}
	return out
}

// forgotten returns the unowned children that this pass applied.
func (p *pass) forgotten(owner child.Owner) []*unstructured.Unstructured {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*unstructured.Unstructured
	for _, o := range p.applied {
		if owner.Forgets(o) {
			out = append(out, o.DeepCopy())
		}
	}
	return out
}

// Remove takes a child away as its policy says.
func (c *children) Remove(ctx context.Context, gone dsl.ChildObject) error {
	ctx, done, err := c.write(ctx)
	if err != nil {
		return err
	}
	defer done()
	if gone.Object == nil {
		return dsl.Permanent(errors.New("removing child: there is no object in it"))
	}
	if gone.Ownership == dsl.Unowned || gone.OnDelete == dsl.RetainChild {
		return nil
	}
	f, err := c.pass.r.childFeed(gone.Object.GroupVersionKind(), gone.Object.GetNamespace())
	if err != nil {
		return fmt.Errorf("removing %s %s: %w", gone.Object.GetKind(), nameOf(gone.Object), err)
	}
	found := c.pass.cached(f, nameOf(gone.Object))
	if found == nil || found.GetUID() != gone.Object.GetUID() || !c.pass.owner().Has(found) {
		return nil
	}
	if gone.OnDelete == dsl.OrphanChild {
		return c.release(ctx, f, found)
	}
	return c.deleteChild(ctx, f, found)
}

// release cuts a child's tie to the object.
func (c *children) release(ctx context.Context, f *feed.Feed, o *unstructured.Unstructured) error {
	p, served := c.pass, f.Resource()
	result, err := c.pass.owner().Release(ctx, p.r.engine.writer(served.GVR, o.GetNamespace()), p.r.engine.op.Name, o)
	if result != nil {
		p.wrote(f, served.GVR, result)
		c.did(released, nameFor(result), "")
	}
	return err
}

// deleteChild deletes a child, if it still is that object. For the rest of the pass it is one that
// is being deleted.
func (c *children) deleteChild(ctx context.Context, f *feed.Feed, o *unstructured.Unstructured) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	p, key, gvr := c.pass, nameOf(o), f.Resource().GVR
	uid, background := o.GetUID(), metav1.DeletePropagationBackground
	err := p.r.engine.writer(gvr, key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if gone.Says(err, gvr.GroupResource(), key.Name) || apierrors.IsConflict(err) {
		return nil // gone, or another object has the name: the cache will tell
	}
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", o.GetKind(), key, err)
	}
	now := metav1.NewTime(time.Now())
	o.SetDeletionTimestamp(&now)
	p.hold(idOf(gvr, key), o)
	p.awaitGone(f, key, uid)
	p.r.engine.metrics.Written(p.r.name, ops.Child)
	c.did(deleted, nameFor(o), "")
	return nil
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package family

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// children is dsl.Children for one attempt of a handler.
type children struct{ Reader }

var _ dsl.Children = (*children)(nil)

// Delete deletes a child.
func (c *children) Delete(ctx context.Context, resource, name string) error {
	ctx, done, err := c.span.Write(ctx)
	if err != nil {
		return err
	}
	defer done()
	f, found, err := c.get(resource, name)
	if err != nil || found == nil {
		return err
	}
	return c.deleteChild(ctx, f, found)
}

// Remove takes a child away as its policy says.
func (c *children) Remove(ctx context.Context, gone dsl.ChildObject) error {
	ctx, done, err := c.span.Write(ctx)
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
	key := cache.MetaObjectToName(gone.Object)
	f, err := c.session.family.kind(gone.Object.GroupVersionKind(), key.Namespace)
	if err != nil {
		return fmt.Errorf("removing %s: %w", child.PlaceOf(gone.Object).People(), err)
	}
	found := c.session.known(f, id{f.Resource().GVR, key})
	if found == nil || found.GetUID() != gone.Object.GetUID() || !c.session.owner().Has(found) {
		return nil
	}
	if gone.OnDelete == dsl.OrphanChild {
		return c.release(ctx, f, found)
	}
	return c.deleteChild(ctx, f, found)
}

// release cuts a child's tie to the owner.
func (c *children) release(ctx context.Context, f *feed.Feed, o *unstructured.Unstructured) error {
	with, gvr := c.session.family.settings, f.Resource().GVR
	result, err := c.session.owner().Release(ctx, with.Client(gvr, o.GetNamespace()), with.Operator.Name, o)
	if result != nil {
		c.wrote(f, child.Released, "", gvr, result)
	}
	return err
}

// deleteChild deletes a child, if it still is that object. For the rest of the pass it is one that
// is being deleted.
func (c *children) deleteChild(ctx context.Context, f *feed.Feed, o *unstructured.Unstructured) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	s, key, gvr := c.session, cache.MetaObjectToName(o), f.Resource().GVR
	uid, background := o.GetUID(), metav1.DeletePropagationBackground
	err := s.family.settings.Client(gvr, key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
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
	s.hold(id{gvr, key}, o)
	s.noteGone(c.write(), f, key, uid)
	s.count(ops.Child)
	c.say(child.Deleted, o, "")
	return nil
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package family

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/child"
	"github.com/handwerk-dev/handwerk/engine/claim"
	"github.com/handwerk-dev/handwerk/engine/feed"
	"github.com/handwerk-dev/handwerk/engine/fence"
	"github.com/handwerk-dev/handwerk/engine/gone"
	"github.com/handwerk-dev/handwerk/engine/ops"
)

// children is dsl.Children for one attempt of a handler. Without a span and an attempt, as filters have it, it only
// reads.
type children struct {
	session *Session
	span    *fence.Span
	attempt claim.Attempt
}

var _ dsl.Children = (*children)(nil)

// Get returns one child from the cache, or as this pass has applied it.
func (c *children) Get(resource, name string) (*unstructured.Unstructured, error) {
	_, found, err := c.get(resource, name)
	return found, err
}

func (c *children) get(resource, name string) (*feed.Feed, *unstructured.Unstructured, error) {
	f, err := c.declared(resource)
	if err != nil {
		return nil, nil, err
	}
	found := c.session.cached(f, c.key(f, name))
	if found == nil || !c.session.owner().Has(found) {
		return f, nil, nil
	}
	return f, found, nil
}

// key is the key of a child by its name, or by namespace/name where it is not in the owner's.
func (c *children) key(f *feed.Feed, name string) cache.ObjectName {
	namespace, rest, both := strings.Cut(name, "/")
	switch {
	case both:
		return cache.ObjectName{Namespace: namespace, Name: rest}
	case f.Resource().Namespaced:
		return cache.ObjectName{Namespace: c.session.pass.Object.GetNamespace(), Name: name}
	}
	return cache.ObjectName{Name: name}
}

// declared returns the feed of an owned resource, once the cache has it.
func (c *children) declared(resource string) (*feed.Feed, error) {
	return c.session.family.declared(resource, c.session.pass.Object.GetNamespace())
}

// List returns the children of a resource from the cache, or as this pass has applied them.
func (c *children) List(resource string) ([]*unstructured.Unstructured, error) {
	f, err := c.declared(resource)
	if err != nil {
		return nil, err
	}
	out, owner := c.session.tied(f), c.session.owner()
	return slices.DeleteFunc(out, func(o *unstructured.Unstructured) bool { return !owner.Has(o) }), nil
}

// All returns the children that were applied with names. It fails rather than leave some out, for
// what it does not return is taken to be gone.
func (c *children) All() ([]dsl.ChildObject, error) {
	s, owner := c.session, c.session.owner()
	if err := s.family.complete(); err != nil {
		return nil, err
	}
	found := s.forgotten(owner)
	for kind := range s.family.kinds {
		found = append(found, slices.DeleteFunc(s.tied(kind), func(o *unstructured.Unstructured) bool { return !owner.Has(o) })...)
	}
	var out []dsl.ChildObject
	for _, o := range found {
		if spec, named := owner.Spec(o); named {
			out = append(out, dsl.ChildObject{ChildSpec: spec, Object: o})
		}
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
	if c.session.owner().Record != nil {
		return false, nil
	}
	if err := c.session.family.complete(); err != nil {
		return false, err
	}
	return len(c.session.unlisted()) > 0, nil
}

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
		return fmt.Errorf("removing %s: %w", nameFor(gone.Object), err)
	}
	found := c.session.cached(f, key)
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
	s.family.settings.Metrics.Written(s.family.settings.Resource.Name.String(), ops.Child)
	c.say(child.Deleted, nameFor(o), "")
	return nil
}

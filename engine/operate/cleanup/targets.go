// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
)

// patchers returns the field managers with which the operator's handlers have patched an object, for any owner. An
// owner's inventory lacks the object if somebody has overwritten the inventory, or has removed the finalizer of a
// deleted owner.
func (c *Cleaner) patchers(o metav1.Object) (out []string) {
	for _, e := range o.GetManagedFields() {
		ours := func(op *dsl.Operator) bool { return ownership.IsTargetManager(e.Manager, op.Name) }
		if e.Operation == metav1.ManagedFieldsOperationApply && slices.ContainsFunc(c.names, ours) {
			out = append(out, e.Manager)
		}
	}
	return out
}

// keepOwners drops fields for owners that were not found, if other deployments may have these owners.
func (f *Findings) keepOwners() {
	if len(f.Beside) == 0 && !f.Alone {
		return
	}
	foreign := func(manager string) bool {
		return !slices.ContainsFunc(f.Objects, func(one Found) bool { return ownership.IsManagerOf(manager, one.UID) })
	}
	for _, list := range [][]Found{f.Objects, f.Children, f.Patched} {
		for i := range list {
			list[i].managers = slices.DeleteFunc(list[i].managers, foreign)
		}
	}
	f.Patched = slices.DeleteFunc(f.Patched, func(one Found) bool { return len(one.managers) == 0 })
}

// yieldAll releases the fields that were found on an object, and returns the object after that.
func (c *Cleaner) yieldAll(ctx context.Context, client dynamic.ResourceInterface, f Found, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, manager := range f.managers {
		err := c.yieldOne(ctx, client, ownership.Target{Place: ownership.PlaceOf(o), Manager: manager}, o)
		if err == nil {
			o, err = client.Get(ctx, f.Name, metav1.GetOptions{})
		}
		if err != nil {
			return nil, fmt.Errorf("giving back fields of %s: %w", manager, err)
		}
	}
	return o, nil
}

// yieldOne releases the fields of one target, in the version in which they were applied if that is served; see
// [apply.AppliedIn].
func (c *Cleaner) yieldOne(ctx context.Context, client dynamic.ResourceInterface, t ownership.Target, live *unstructured.Unstructured) error {
	other, err := apply.AppliedIn(ctx, c.catalog, t, live)
	if err == nil && other != nil {
		client = c.dynamic.Resource(*other).Namespace(t.Namespace)
		live, err = client.Get(ctx, t.Name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	kept, err := apply.KeptFields(ctx, c.catalog, live.GroupVersionKind())
	if err != nil {
		return err
	}
	out, err := apply.Patching{Client: client, Renewer: c.renewer, Target: t, Kept: kept}.Release(ctx, live)
	if len(out.Left) > 0 && c.set.Report != nil {
		c.set.Report(fmt.Sprintf("%s keeps %s: the API server requires them", t.Describe(), strings.Join(out.Left, ", ")))
	}
	if out.Unread != nil && c.set.Report != nil {
		c.set.Report(fmt.Sprintf("%s keeps the values of a handler: %v", t.Describe(), out.Unread))
	}
	return err
}

// giveBack releases the fields of the patched objects that an owner's inventory lists. It must come before the removal
// of the inventory.
func (c *Cleaner) giveBack(ctx context.Context, owner metav1.Object) error {
	for _, op := range c.names {
		inventory, err := ownership.ParseInventory(owner.GetAnnotations()[op.ChildrenAnnotation()], owner.GetUID())
		for _, t := range inventory.Targets() {
			if err := c.yield(ctx, t); err != nil {
				return fmt.Errorf("giving back fields of %s: %w", t.Describe(), err)
			}
		}
		if err != nil {
			if err := c.unread(op, owner, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// unread returns the error for an inventory that cannot be read: nil if all its objects were found without it.
func (c *Cleaner) unread(op *dsl.Operator, owner metav1.Object, err error) error {
	known := c.sawAll
	for _, r := range c.op.Resources() {
		_, all := r.PatchedKinds()
		known = known && all
	}
	if known {
		return nil
	}
	return fmt.Errorf("%w: which objects handlers have patched is not known, and not all can be looked for: take off what field managers "+
		"%s/patch/…/%s have set, and then annotation %s of the object", err, op.Name, owner.GetUID(), op.ChildrenAnnotation())
}

// yield releases the fields of one object. It does nothing if the object is gone, or its kind is not served.
func (c *Cleaner) yield(ctx context.Context, t ownership.Target) error {
	served, err := c.catalog.KindOf(ctx, t.Kind.WithVersion(""))
	if errors.Is(err, discovery.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	client := c.dynamic.Resource(served.GVR).Namespace(t.Namespace)
	live, err := client.Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.yieldOne(ctx, client, t, live)
}

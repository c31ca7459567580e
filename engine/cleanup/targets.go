// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/handwerk-dev/handwerk/engine/catalog"
	"github.com/handwerk-dev/handwerk/engine/children/apply"
	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// giveBack gives back the fields of the objects that handlers have patched for an owner, which its record lists. It goes
// before the record.
func (c *Cleaner) giveBack(ctx context.Context, owner metav1.Object) error {
	for _, op := range c.names {
		record, err := ownership.ParseRecord(owner.GetAnnotations()[op.ChildrenAnnotation()], owner.GetUID())
		if err != nil {
			return err
		}
		for _, t := range record.Targets() {
			if err := c.yield(ctx, t); err != nil {
				return fmt.Errorf("giving back fields of %s: %w", t.People(), err)
			}
		}
	}
	return nil
}

// yield gives back the fields of one object. An object that is gone has none, and so has one whose kind is not served.
func (c *Cleaner) yield(ctx context.Context, t ownership.Target) error {
	served, err := c.catalog.KindOf(ctx, t.Kind.WithVersion(""))
	if errors.Is(err, catalog.ErrMissing) {
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
	_, err = apply.Yield(ctx, client, t, live)
	return err
}

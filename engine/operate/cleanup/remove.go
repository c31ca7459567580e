// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Remove cleans up the findings, and returns errors: first children, then patched fields and the marks on owners, then
// the operator's own objects. These stay if something before them failed, because they record where it is. Progress, if
// not nil, is called after each object.
func (c *Cleaner) Remove(ctx context.Context, f Findings, progress func(Found)) (failed []error) {
	all := slices.Concat(f.Children, f.Patched, f.Objects, f.Own)
	c.sawAll = len(f.Unseen) == 0
	for i, one := range all {
		if ctx.Err() != nil {
			return append(failed, fmt.Errorf("cleaning the other %d objects: %w", len(all)-i, context.Cause(ctx)))
		}
		if one.Own && len(failed)+len(f.Unseen) > 0 {
			failed = append(failed, fmt.Errorf("%s stays: it says where the rest is", one))
			continue
		}
		if err := c.remove(ctx, one); err != nil {
			failed = append(failed, fmt.Errorf("cleaning %s: %w", one, err))
			c.sawAll = c.sawAll && len(one.managers) == 0 // fields may be left that only a record lists
			continue
		}
		if progress != nil {
			progress(one)
		}
	}
	return failed
}

// remove deletes an object or removes its marks. An object that is gone already is done.
func (c *Cleaner) remove(ctx context.Context, f Found) error {
	client := c.dynamic.Resource(f.Resource.GVR).Namespace(f.Namespace)
	var err error
	if f.Own || f.Child && c.set.DeleteChildren {
		background := metav1.DeletePropagationBackground
		err = client.Delete(ctx, f.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &f.UID}, PropagationPolicy: &background})
		if err == nil && f.held {
			err = c.unmark(ctx, client, f) // the object goes with its finalizer
		}
	} else {
		err = c.unmark(ctx, client, f)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// unmark removes the marks from the present object, after it has released the fields that handlers have patched on it
// and for it. Conditions go before the finalizer, because the object may be deleted with that.
func (c *Cleaner) unmark(ctx context.Context, client dynamic.ResourceInterface, f Found) (err error) {
	for range tries {
		var o *unstructured.Unstructured
		if o, err = client.Get(ctx, f.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		if o.GetUID() != f.UID {
			return nil
		}
		if o, err = c.yieldAll(ctx, client, f, o); err != nil {
			return err
		}
		m := c.marksOf(o)
		if m.empty() {
			return nil
		}
		if err = c.giveBack(ctx, o); err != nil {
			return err
		}
		if o, err = c.withoutConditions(ctx, client, f, o, m.conditions); err == nil {
			m.conditions = nil
			if m.empty() {
				return nil
			}
			err = c.patch(ctx, client, f.Name, m.without(o))
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// withoutConditions removes conditions from an object, and returns the result.
func (c *Cleaner) withoutConditions(
	ctx context.Context, client dynamic.ResourceInterface, f Found, o *unstructured.Unstructured, kinds []string,
) (*unstructured.Unstructured, error) {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	rest := slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		condition, _ := item.(map[string]any)
		kind, _ := condition["type"].(string)
		return slices.Contains(kinds, kind)
	})
	if len(rest) == len(list) {
		return o, nil
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": o.GetResourceVersion(), "uid": o.GetUID()},
		"status":   map[string]any{"conditions": rest},
	})
	if err != nil {
		return o, err
	}
	var subresource []string
	if f.Resource.Status {
		subresource = []string{"status"}
	}
	after, err := client.Patch(ctx, f.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: c.op.Name}, subresource...)
	if err != nil {
		return o, err
	}
	return after, nil
}

func (c *Cleaner) patch(ctx context.Context, client dynamic.ResourceInterface, name string, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: c.op.Name})
	return err
}

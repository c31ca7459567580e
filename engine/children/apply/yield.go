// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/drift"
)

// Yield gives back the fields that a handler owns of an object which is no child: it applies none with the target's field manager, so
// the server removes those that no other manager owns. The result is nil when there was nothing to give back. Live is the object as the
// server has it; nil when it is gone.
func Yield(ctx context.Context, c dynamic.ResourceInterface, t ownership.Target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if live == nil || !drift.Applies(live, t.Manager) {
		return nil, nil
	}
	none := &unstructured.Unstructured{Object: map[string]any{}}
	none.SetAPIVersion(live.GetAPIVersion())
	none.SetKind(live.GetKind())
	none.SetNamespace(live.GetNamespace())
	none.SetName(live.GetName())
	none.SetUID(live.GetUID()) // so that the server creates no object where this one is gone
	result, err := c.Apply(ctx, t.Name, none, metav1.ApplyOptions{FieldManager: t.Manager, Force: true})
	if err == nil || !gone(err) {
		return result, err
	}
	now, failed := c.Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(failed) || failed == nil && now.GetUID() != live.GetUID() {
		return nil, nil // it was deleted meanwhile, with its fields
	}
	return nil, err
}

// gone reports whether an error may say that the object is gone, or that another one has its name.
func gone(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err)
}

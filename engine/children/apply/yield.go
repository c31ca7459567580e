// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
	"github.com/handwerk-dev/handwerk/engine/cluster/discovery"
	"github.com/handwerk-dev/handwerk/engine/decide/drift"
)

// AppliedIn returns the resource in the version in which a target's manager has applied live. The note of replaced
// values has the paths of that version. AppliedIn returns nil if live has that version, or if the version is not served.
func AppliedIn(ctx context.Context, kinds Kinds, t ownership.Target, live *unstructured.Unstructured) (*schema.GroupVersionResource, error) {
	version := drift.AppliedVersion(live, t.Manager)
	if version == "" || version == live.GetAPIVersion() {
		return nil, nil
	}
	served, err := kinds.KindOf(ctx, schema.FromAPIVersionAndKind(version, t.Kind.Kind))
	if errors.Is(err, discovery.ErrMissing) {
		return nil, nil
	}
	return &served.GVR, err
}

// Release releases the fields that a handler owns in an object that is not a child. It applies no fields with the target's
// field manager, so the server removes the fields that no other manager owns. Replicas stay as they are, replaced values
// come back, and fields that the server requires stay. There are no writes if there is nothing to release. Live is the
// object from the server; nil if it is gone.
func (p Patching) Release(ctx context.Context, live *unstructured.Unstructured) (PatchResult, error) {
	if live == nil || !drift.Applies(live, p.Target.Manager) {
		return PatchResult{}, nil
	}
	none := &unstructured.Unstructured{Object: map[string]any{}}
	none.SetGroupVersionKind(live.GroupVersionKind())
	none.SetNamespace(live.GetNamespace())
	none.SetName(live.GetName())
	out, err := p.Apply(ctx, none, live, Force{Always: true})
	if err == nil || !gone(err) {
		return out, err
	}
	now, failed := p.Client.Get(ctx, p.Target.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(failed) || failed == nil && now.GetUID() != live.GetUID() {
		return out, nil // it was deleted meanwhile, with its fields
	}
	return out, err
}

// Rewrite writes managedFields and annotations to the version that was read.
func Rewrite(ctx context.Context, c dynamic.ResourceInterface, now *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, manager string, notes map[string]any) (*unstructured.Unstructured, error) {
	if len(entries) == 0 {
		entries = []metav1.ManagedFieldsEntry{{}} // the server's form of an empty list
	}
	metadata := map[string]any{"uid": string(now.GetUID()), "resourceVersion": now.GetResourceVersion(), "managedFields": entries}
	if len(notes) > 0 {
		metadata["annotations"] = notes
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	return c.Patch(ctx, now.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
}

// gone reports whether an error may say that the object is gone, that another one has its name, or that it has changed.
func gone(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err)
}

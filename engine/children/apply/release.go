// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
)

// releaseRetries is how often a release is worked out again after somebody else wrote in between.
const releaseRetries = 5

// Release cuts what ties a child to its owner and leaves all else as it is: an apply of nothing would take its contents
// along. The result is nil when there was nothing to cut, because the child is gone, or not this owner's any more.
func (o Owner) Release(ctx context.Context, c dynamic.ResourceInterface, manager string, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	uid, child := live.GetUID(), name(live)
	for attempt := 0; ; attempt++ {
		if !o.Has(live) || live.GetUID() != uid {
			return nil, nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": o.untied(live)})
		if err != nil {
			return nil, fmt.Errorf("releasing %s: %w", child, err)
		}
		result, err := c.Patch(ctx, live.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
		if (apierrors.IsConflict(err) || apierrors.IsInvalid(err)) && attempt < releaseRetries { // another version, or uid
			if live, err = c.Get(ctx, live.GetName(), metav1.GetOptions{}); err == nil {
				continue
			}
		}
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("releasing %s: %w", child, err)
		}
		return result, nil
	}
}

// untied is the merge patch of metadata that takes this owner's tie away from the version that was looked at.
func (o Owner) untied(live *unstructured.Unstructured) map[string]any {
	patch := map[string]any{"uid": string(live.GetUID()), "resourceVersion": live.GetResourceVersion()}
	refs, _, _ := unstructured.NestedSlice(live.Object, "metadata", "ownerReferences")
	var others []any
	for _, ref := range refs {
		if r, ok := ref.(map[string]any); !ok || r["uid"] != string(o.Object.GetUID()) {
			others = append(others, ref)
		}
	}
	switch {
	case len(others) == len(refs):
	case len(others) == 0:
		patch["ownerReferences"] = nil
	default:
		patch["ownerReferences"] = others
	}
	if _, found := live.GetLabels()[o.Keys.Label]; found {
		patch["labels"] = map[string]any{o.Keys.Label: nil}
	}
	notes := map[string]any{}
	for _, key := range []string{o.Keys.Applied, o.Keys.Child, o.Keys.Owner} {
		if _, found := live.GetAnnotations()[key]; found {
			notes[key] = nil
		}
	}
	if len(notes) > 0 {
		patch["annotations"] = notes
	}
	return patch
}

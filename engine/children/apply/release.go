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

	"github.com/handwerk-dev/handwerk/engine/children/ownership"
)

// releaseRetries is how often a release is worked out again after somebody else wrote in between.
const releaseRetries = 5

// Release cuts what ties a child to its owner and leaves all else as it is: an apply of nothing would take its contents
// along. The result is nil when there was nothing to cut, because the child is gone, or not this owner's any more.
func Release(ctx context.Context, o ownership.Owner, c dynamic.ResourceInterface, manager string, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	uid, child := live.GetUID(), name(live)
	for attempt := 0; ; attempt++ {
		if !o.Has(live) || live.GetUID() != uid {
			return nil, nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": o.Released(live)})
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

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

// releaseRetries bounds how often a release starts again after somebody else wrote in between.
const releaseRetries = 5

// Release removes the ties of a child to its owner, and leaves all else as it is. An apply of an empty object would
// remove the contents, too. The result is nil if there were no ties to remove: the child is gone, or is not this
// owner's.
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

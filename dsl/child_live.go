// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package dsl

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// LiveChildren are [Children] that can be read from the API server. Those of the engine can.
type LiveChildren interface {
	// Live returns the object that [Children.Apply] would update, as the API server has it, and not the cache. It is nil
	// where Apply would create the child, or refuse what is there. The arguments are those of Apply.
	Live(ctx context.Context, desired any, spec ChildSpec) (*unstructured.Unstructured, error)
}

// LiveChild is Live for children that may not be [LiveChildren]; then it is an error.
func LiveChild(ctx context.Context, c Children, desired any, spec ChildSpec) (*unstructured.Unstructured, error) {
	live, can := c.(LiveChildren)
	if !can {
		return nil, Permanent(errors.New("these children cannot be read from the API server"))
	}
	return live.Live(ctx, desired, spec)
}

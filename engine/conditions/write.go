// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/patch"
)

// Write is [patch.Write] for a wish with the condition that says which handlers fail. Where the resource has no
// conditions, or the server does not take it, all but the condition is written: it is not worth a pass that cannot be
// finished. Owed reports whether the condition is to be written later; it is as before where there is none to write.
func (s *Schema) Write(ctx context.Context, t patch.Target, wish patch.Wish, before bool) (result patch.Result, owed bool, err error) {
	_, first := wish(t.Object)
	if first.Condition == nil && first.Mended == "" {
		result, err = patch.Write(ctx, t, wish)
		return result, before, err
	}
	without := func(live *unstructured.Unstructured) (*dsl.Patch, patch.Marks) {
		wanted, marks := wish(live)
		marks.Condition, marks.Mended = nil, ""
		return wanted, marks
	}
	takes, unknown := s.takesFailing(ctx)
	if !takes {
		result, err = patch.Write(ctx, t, without)
		return result, unknown != nil, err
	}
	result, err = patch.Write(ctx, t, wish)
	if result.Status || result.Whole || !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		return result, unknown != nil, err
	}
	refused := err
	if result, err = patch.Write(ctx, t, without); err == nil {
		s.failingRefused(refused)
	}
	return result, err == nil, err
}

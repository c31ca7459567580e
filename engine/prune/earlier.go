// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// takeOver enters the kinds in registers of earlier names into the ConfigMap, and then deletes those registers. It returns the
// ConfigMap, nil where there is none.
func (r *Register) takeOver(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, name := range r.settings.Earlier {
		earlier, err := r.get(ctx, name)
		if err != nil {
			return nil, err
		}
		if earlier == nil {
			continue
		}
		into := read(o, r.managers()).kinds
		next, more := r.blankOr(o), false
		for resource, kinds := range read(earlier, r.managers()).kinds {
			both := append(slices.Clone(into[resource]), kinds...)
			slices.SortFunc(both, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
			if both = slices.Compact(both); len(both) == len(into[resource]) {
				continue
			}
			more = true
			if err := set(next, resource, both); err != nil {
				return nil, err
			}
		}
		if more {
			if o, err = r.store(ctx, next, o != nil); err != nil {
				return nil, fmt.Errorf("taking over ConfigMap %s/%s: %w", r.settings.Namespace, name, err)
			}
		}
		uid, version := earlier.GetUID(), earlier.GetResourceVersion()
		err = r.settings.Client.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("deleting ConfigMap %s/%s: %w", r.settings.Namespace, name, err)
		}
	}
	return o, nil
}

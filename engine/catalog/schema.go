// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ObservedGeneration reports whether the resource keeps status.observedGeneration: it has a status
// subresource and its CRD's schema has that field. It is false too for what is not from a CRD, and
// when the CRD may not be read. The error tells that the server could not be asked.
func (c *Catalog) ObservedGeneration(ctx context.Context, r Resource) (bool, error) {
	if !r.Status {
		return false, nil // without the subresource a write of status moves the generation
	}
	crds := schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
	crd, err := c.dynamic.Resource(crds).Get(ctx, r.GVR.GroupResource().String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the CRD of %s: %w", r.GVR.GroupResource(), err)
	}
	list, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	versions, _ := list.([]any)
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["name"] != r.GVR.Version {
			continue
		}
		_, found, _ := unstructured.NestedFieldNoCopy(version,
			"schema", "openAPIV3Schema", "properties", "status", "properties", "observedGeneration")
		return found, nil
	}
	return false, nil
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// ScalePath returns the path of the field that a kind's scale subresource shows as spec.replicas; nil if the kind has no such
// subresource. If the CRD may not be read, it returns the usual path. An error means that the server could not be asked.
func (c *Catalog) ScalePath(ctx context.Context, kind schema.GroupVersionKind) (dsl.Path, error) {
	usual := dsl.Path{"spec", "replicas"}
	switch kind.GroupKind().String() {
	case "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "ReplicationController":
		return usual, nil
	}
	if dsl.BuiltIn(kind.Group) {
		return nil, nil
	}
	served, err := c.KindOf(ctx, kind)
	if err != nil || !served.Scale {
		return nil, err
	}
	c.mu.Lock()
	known, found := c.scales[served.GVR]
	generation := c.generation
	c.mu.Unlock()
	if found {
		return known, nil
	}
	crd, err := c.dynamic.Resource(crds()).Get(ctx, served.GVR.GroupResource().String(), metav1.GetOptions{})
	switch {
	case err == nil:
		usual = scalePath(crd, kind.Version)
	case !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading the CRD of %s: %w", served.GVR.GroupResource(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation == c.generation {
		if c.scales == nil {
			c.scales = map[schema.GroupVersionResource]dsl.Path{}
		}
		c.scales[served.GVR] = usual
	}
	return usual, nil
}

// crds returns the resource of CRDs.
func crds() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// scalePath returns the path that a CRD has for a version; nil for none.
func scalePath(crd *unstructured.Unstructured, version string) dsl.Path {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		of, _ := v.(map[string]any)
		path, _, _ := unstructured.NestedString(of, "subresources", "scale", "specReplicasPath")
		if of["name"] == version && path != "" {
			return strings.Split(strings.TrimPrefix(path, "."), ".")
		}
	}
	return nil
}

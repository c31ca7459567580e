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
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/scheme"
)

// ObservedGeneration reports whether the resource keeps status.observedGeneration: it has a status
// subresource and its CRD's schema has that field. It is false too for what is not from a CRD, and
// when neither the CRD nor what the server publishes may be read. An error means that the server could not be asked.
func (c *Catalog) ObservedGeneration(ctx context.Context, r Resource) (bool, error) {
	if !r.Status {
		return false, nil // without the subresource, writing the status changes the generation
	}
	fields, err := c.statusFields(ctx, r)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	return fields.Has("observedGeneration"), err
}

// Conditions reports whether the resource keeps status.conditions: its CRD's schema has that field.
// It is false for what is not from a CRD: the conditions of built-in kinds are those of their own
// controllers. An error means that the server could not be asked, or that the CRD may not be read;
// apierrors.IsForbidden applies then.
func (c *Catalog) Conditions(ctx context.Context, r Resource) (bool, error) {
	fields, err := c.statusFields(ctx, r)
	return fields.Has("conditions"), err
}

// statusFields returns the fields in the schema of the resource's status. Results are kept until the catalog is
// invalidated.
func (c *Catalog) statusFields(ctx context.Context, r Resource) (sets.Set[string], error) {
	c.mu.Lock()
	known, found := c.status[r.GVR]
	generation := c.generation
	c.mu.Unlock()
	if found {
		return known, nil
	}
	fields, err := c.askStatus(ctx, r.GVR)
	if apierrors.IsForbidden(err) {
		fields, err = c.publishedStatus(ctx, r, err)
	}
	if err != nil {
		return nil, err
	}
	c.keepStatus(r.GVR, fields, generation)
	return fields, nil
}

// keepStatus keeps a result, unless the catalog was invalidated since that generation.
func (c *Catalog) keepStatus(gvr schema.GroupVersionResource, fields sets.Set[string], generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if c.status == nil {
		c.status = map[schema.GroupVersionResource]sets.Set[string]{}
	}
	c.status[gvr] = fields
}

// Foresee reads the CRD of a resource, so that [Catalog.ObservedGeneration] and [Catalog.Conditions] need no request later. It may be
// called before it is known whether the server serves the resource. The caller must call keep when that is known, and only where it
// does: a CRD that is not served yet may be another one when it is. What it cannot read they read themselves.
func (c *Catalog) Foresee(ctx context.Context, gvr schema.GroupVersionResource) (keep func()) {
	c.mu.Lock()
	generation := c.generation
	c.mu.Unlock()
	fields, err := c.askStatus(ctx, gvr)
	return func() {
		if err == nil && fields != nil {
			c.keepStatus(gvr, fields, generation)
		}
	}
}

// publishedStatus is askStatus for accounts that may not read CRDs: the schemas that the server publishes can be
// read by every authenticated user. They are large, so the CRD is tried first. Only kinds with a CRD count. If
// nothing is published, it returns the error refused.
func (c *Catalog) publishedStatus(ctx context.Context, r Resource, refused error) (sets.Set[string], error) {
	kind := r.GVR.GroupVersion().WithKind(r.Kind)
	if scheme.Scheme.Recognizes(kind) {
		return nil, nil
	}
	found, err := c.Schemas().Of(ctx, kind)
	if err != nil || found[kind] == nil {
		return nil, refused
	}
	return sets.KeySet(found[kind].Properties["status"].Properties), nil
}

func (c *Catalog) askStatus(ctx context.Context, gvr schema.GroupVersionResource) (sets.Set[string], error) {
	crd, err := c.dynamic.Resource(crds()).Get(ctx, gvr.GroupResource().String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the CRD of %s: %w", gvr.GroupResource(), err)
	}
	list, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	versions, _ := list.([]any)
	for _, v := range versions {
		version, ok := v.(map[string]any)
		if !ok || version["name"] != gvr.Version {
			continue
		}
		properties, _, _ := unstructured.NestedFieldNoCopy(version,
			"schema", "openAPIV3Schema", "properties", "status", "properties")
		tree, _ := properties.(map[string]any)
		return sets.KeySet(tree), nil
	}
	return nil, nil
}

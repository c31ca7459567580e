// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/openapi"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// ObservedGeneration reports whether the resource keeps status.observedGeneration: it has a status
// subresource and its CRD's schema has that field. It is false too for what is not from a CRD, and
// when neither the CRD nor what the server publishes may be read. An error means that the server could not be asked.
func (c *Catalog) ObservedGeneration(ctx context.Context, r Resource) (bool, error) {
	if !r.Status {
		return false, nil // without the subresource, writing the status changes the generation
	}
	status, err := c.statusOf(ctx, r)
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	return status.generation, err
}

// Conditions says whether a resource keeps conditions, by the schema of its CRD.
type Conditions struct {
	// Kept means that the schema has status.conditions, whose items have a status and a reason. It is false for resources that are
	// not from a CRD: the conditions of built-in kinds are those of their own controllers.
	Kept bool
	// Lacks names the missing parts of a CRD's schema, for people. It is empty for other resources, and if any field is
	// kept.
	Lacks string
}

// Conditions returns whether the resource keeps conditions. An error means that the server could not be asked, or that the CRD may not
// be read; apierrors.IsForbidden applies then.
func (c *Catalog) Conditions(ctx context.Context, r Resource) (Conditions, error) {
	status, err := c.statusOf(ctx, r)
	return status.conditions, err
}

// statusSchema is what is known of the schema of a resource's status.
type statusSchema struct {
	generation bool
	conditions Conditions
}

// statusOf returns what is known of the schema of the resource's status. Results are kept until the catalog is
// invalidated.
func (c *Catalog) statusOf(ctx context.Context, r Resource) (statusSchema, error) {
	c.mu.Lock()
	known, found := c.status[r.GVR]
	generation := c.generation
	c.mu.Unlock()
	if found {
		return known, nil
	}
	status, _, err := c.askStatus(ctx, r.GVR)
	if apierrors.IsForbidden(err) {
		status, err = c.publishedStatus(ctx, r, err)
	}
	if err != nil {
		return statusSchema{}, err
	}
	c.keepStatus(r.GVR, status, generation)
	return status, nil
}

// keepStatus keeps a result, unless the catalog was invalidated since that generation.
func (c *Catalog) keepStatus(gvr schema.GroupVersionResource, status statusSchema, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if c.status == nil {
		c.status = map[schema.GroupVersionResource]statusSchema{}
	}
	c.status[gvr] = status
}

// Foresee reads the CRD of a resource, so that [Catalog.ObservedGeneration] and [Catalog.Conditions] need no request later. It may be
// called before it is known whether the server serves the resource. The caller must call keep when that is known, and only where it
// does: a CRD that is not served yet may be another one when it is. What it cannot read they read themselves.
func (c *Catalog) Foresee(ctx context.Context, gvr schema.GroupVersionResource) (keep func()) {
	c.mu.Lock()
	generation := c.generation
	c.mu.Unlock()
	status, found, err := c.askStatus(ctx, gvr)
	return func() {
		if err == nil && found {
			c.keepStatus(gvr, status, generation)
		}
	}
}

// publishedStatus is askStatus for accounts that may not read CRDs: the schemas that the server publishes can be
// read by every authenticated user. They are large, so the CRD is tried first. Only kinds with a CRD count. If
// nothing is published, it returns the error refused.
func (c *Catalog) publishedStatus(ctx context.Context, r Resource, refused error) (statusSchema, error) {
	kind := r.GVR.GroupVersion().WithKind(r.Kind)
	if scheme.Scheme.Recognizes(kind) {
		return statusSchema{}, nil
	}
	found, err := c.Schemas().Of(ctx, kind)
	if err != nil || found[kind] == nil {
		return statusSchema{}, refused
	}
	return readStatus(found[kind]), nil
}

// askStatus reads the CRD of a resource. Found means that it has the resource's version.
func (c *Catalog) askStatus(ctx context.Context, gvr schema.GroupVersionResource) (status statusSchema, found bool, err error) {
	crd, err := c.dynamic.Resource(crds()).Get(ctx, gvr.GroupResource().String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return statusSchema{}, false, nil
	}
	if err != nil {
		return statusSchema{}, false, fmt.Errorf("reading the CRD of %s: %w", gvr.GroupResource(), err)
	}
	list, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	for _, version := range plain.Maps(list) {
		if version["name"] != gvr.Version {
			continue
		}
		root, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
		tree, _ := root.(map[string]any)
		part := map[string]any{openapi.Preserves: tree[openapi.Preserves]}
		if status, found, _ := unstructured.NestedFieldNoCopy(tree, "properties", "status"); found {
			part["properties"] = map[string]any{"status": status}
		}
		data, err := json.Marshal(part)
		if err != nil {
			return statusSchema{}, false, fmt.Errorf("reading the CRD of %s: %w", gvr.GroupResource(), err)
		}
		self := &spec.Schema{}
		if err := json.Unmarshal(data, self); err != nil {
			return statusSchema{}, false, fmt.Errorf("reading the CRD of %s: %w", gvr.GroupResource(), err)
		}
		return readStatus(self), true, nil
	}
	return statusSchema{}, false, nil
}

// readStatus reads the schema of a custom resource.
func readStatus(self *spec.Schema) statusSchema {
	fields := self.Properties["status"].Properties
	_, generation := fields["observedGeneration"]
	_, kept := fields["conditions"]
	lacks := openapi.ConditionsLack(self)
	return statusSchema{generation: generation, conditions: Conditions{Kept: kept && lacks == "", Lacks: lacks}}
}

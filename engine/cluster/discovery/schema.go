// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

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

// Conditions says whether a resource keeps conditions, by the schema of its CRD.
type Conditions struct {
	// Kept means that the schema has status.conditions, whose items have a status and a reason. It is false for resources that are
	// not from a CRD: the conditions of built-in kinds are those of their own controllers.
	Kept bool
	// Lacks names the missing parts of a CRD's schema, for people. It is empty for other resources, and if any field is
	// kept.
	Lacks string
}

// Status says which fields that the engine writes the status of a custom resource has, by the schema of its CRD. It is zero for
// resources that are not from a CRD: their status is their own controllers'.
type Status struct {
	Conditions Conditions
	// Generation: it has observedGeneration.
	Generation bool
}

// Status returns which fields the resource's status has. Results are kept until the catalog is invalidated. An error means that the
// server could not be asked, or that the CRD may not be read; apierrors.IsForbidden applies then.
func (c *Catalog) Status(ctx context.Context, r Resource) (Status, error) {
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
		return Status{}, err
	}
	c.keepStatus(r.GVR, status, generation)
	return status, nil
}

// keepStatus keeps a result, unless the catalog was invalidated since that generation.
func (c *Catalog) keepStatus(gvr schema.GroupVersionResource, status Status, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.generation {
		return
	}
	if c.status == nil {
		c.status = map[schema.GroupVersionResource]Status{}
	}
	c.status[gvr] = status
}

// publishedStatus finds the status of a kind for accounts that may not read CRDs. It reads the published schemas, which
// every authenticated user may read. They are large, so the CRD is tried first. Only kinds with a CRD count. If nothing
// is published, it returns the error refused.
func (c *Catalog) publishedStatus(ctx context.Context, r Resource, refused error) (Status, error) {
	kind := r.GVR.GroupVersion().WithKind(r.Kind)
	if scheme.Scheme.Recognizes(kind) {
		return Status{}, nil
	}
	found, err := c.Schemas().Of(ctx, kind)
	if err != nil || found[kind] == nil {
		return Status{}, refused
	}
	return readStatus(found[kind]), nil
}

// askStatus reads the CRD of a resource. Found means that it has the resource's version.
func (c *Catalog) askStatus(ctx context.Context, gvr schema.GroupVersionResource) (status Status, found bool, err error) {
	crd, err := c.dynamic.Resource(crds()).Get(ctx, gvr.GroupResource().String(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Status{}, false, nil
	}
	if err != nil {
		return Status{}, false, fmt.Errorf("reading the CRD of %s: %w", gvr.GroupResource(), err)
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
			return Status{}, false, fmt.Errorf("reading the CRD of %s: %w", gvr.GroupResource(), err)
		}
		self := &spec.Schema{}
		if err := json.Unmarshal(data, self); err != nil {
			return Status{}, false, fmt.Errorf("reading the CRD of %s: %w", gvr.GroupResource(), err)
		}
		return readStatus(self), true, nil
	}
	return Status{}, false, nil
}

// readStatus reads the schema of a custom resource.
func readStatus(self *spec.Schema) Status {
	fields := self.Properties["status"].Properties
	_, generation := fields["observedGeneration"]
	_, kept := fields["conditions"]
	lacks := openapi.ConditionsLack(self)
	return Status{Generation: generation, Conditions: Conditions{Kept: kept && lacks == "", Lacks: lacks}}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package enginetest

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Resource describes a custom resource to [Cluster.Serve].
type Resource struct {
	// Name is kubectl's spelling with a version, as in "foos.v1.example.com". Required.
	Name string
	// Kind is what its objects are, as in "Foo". Required.
	Kind string
	// ClusterScoped: its objects have no namespace.
	ClusterScoped bool
	// NoStatus: it has no status subresource.
	NoStatus bool
	// ObservedGeneration: its schema has status.observedGeneration.
	ObservedGeneration bool
}

// Serve makes the cluster serve custom resources, by a CRD for each. A CRD from a file can be
// served with [Cluster.CreateFile] as well. The usual built-in resources are always served.
func (c *Cluster) Serve(resources ...Resource) {
	c.t.Helper()
	for _, r := range resources {
		c.Create(c.crd(r))
	}
}

// Unserve deletes the CRDs of custom resources and with them their objects. Where finalizers hold
// objects, the CRD goes when they are gone: a second later, as everywhere controllers take a moment.
func (c *Cluster) Unserve(names ...string) {
	c.t.Helper()
	for _, name := range names {
		c.Delete(crdResource, "", c.parse(name).GroupResource().String())
	}
}

const crdResource = "customresourcedefinitions.v1.apiextensions.k8s.io"

func (c *Cluster) crd(r Resource) *unstructured.Unstructured {
	c.t.Helper()
	name := c.parse(r.Name)
	if name.Version == "" || r.Kind == "" {
		c.t.Fatalf("resource %s: a version in the name, and a kind, are required", r.Name)
	}
	status := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	if r.ObservedGeneration {
		status["properties"] = map[string]any{"observedGeneration": map[string]any{"type": "integer", "format": "int64"}}
	}
	version := map[string]any{
		"name": name.Version, "served": true, "storage": true,
		"schema": map[string]any{"openAPIV3Schema": map[string]any{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			"properties": map[string]any{"status": status},
		}},
	}
	if !r.NoStatus {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	scope := "Namespaced"
	if r.ClusterScoped {
		scope = "Cluster"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": name.GroupResource().String()},
		"spec": map[string]any{
			"group": name.Group, "scope": scope, "versions": []any{version},
			"names": map[string]any{"plural": name.Resource, "singular": strings.ToLower(r.Kind), "kind": r.Kind},
		},
	}}
}

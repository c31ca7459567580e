// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Resource describes a custom resource to [Cluster.Serve].
type Resource struct {
	// Name is the name in kubectl's form with a version, as in "foos.v1.example.com". Required.
	Name string
	// Kind is the kind of its objects, as in "Foo". Required.
	Kind string
	// ClusterScoped: its objects are not namespaced.
	ClusterScoped bool
	// NoStatus: it has no status subresource.
	NoStatus bool
	// ObservedGeneration: its schema has status.observedGeneration.
	ObservedGeneration bool
}

// Serve makes the cluster serve custom resources, with a CRD for each. CRDs from files can be created with
// [Cluster.CreateFile]. The usual built-in resources are always served.
func (c *Cluster) Serve(resources ...Resource) {
	c.t.Helper()
	for _, r := range resources {
		c.Create(c.crd(r))
	}
}

// Unserve deletes the CRDs of custom resources, and thereby their objects. If finalizers hold objects, a CRD is
// removed a second after they are gone: real controllers also take a moment.
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

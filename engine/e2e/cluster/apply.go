// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// manager is the field manager of tests' writes.
const manager = "e2e"

// Apply applies each YAML document of source, which is a text if it has several lines, and otherwise a file,
// relative to the module. Objects get the given namespace if it is not empty and their resource is namespaced. When
// Apply returns, CRDs are served and discoverable.
func (c *Cluster) Apply(t testing.TB, namespace, source string) []*unstructured.Unstructured {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	applied, err := c.applyAll(ctx, namespace, source)
	if err != nil {
		t.Fatalf("applying %v", err)
	}
	return applied
}

func (c *Cluster) applyAll(ctx context.Context, namespace, source string) ([]*unstructured.Unstructured, error) {
	if !strings.Contains(source, "\n") {
		if !filepath.IsAbs(source) {
			source = filepath.Join(c.root, source)
		}
		read, err := os.ReadFile(source)
		if err != nil {
			return nil, err
		}
		source = string(read)
	}
	objects, err := Parse(source)
	if err != nil {
		return nil, err
	}
	for i, object := range objects {
		if objects[i], err = c.apply(ctx, namespace, object); err != nil {
			return nil, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return objects, nil
}

// Parse reads objects from the documents of a YAML text.
func Parse(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("parsing object: %w", err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func (c *Cluster) apply(ctx context.Context, namespace string, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := c.serving(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if !resource.Namespaced {
		namespace = ""
	} else if namespace == "" {
		namespace = object.GetNamespace()
	}
	if namespace != "" {
		object.SetNamespace(namespace)
	}
	client := c.objects(object.GroupVersionKind().GroupVersion().WithResource(resource.Name), namespace).client
	applied, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err == nil && object.GetKind() == "CustomResourceDefinition" {
		err = c.awaitServed(ctx, object)
	}
	return applied, err
}

// serving finds the resource of a kind.
func (c *Cluster) serving(kind schema.GroupVersionKind) (metav1.APIResource, error) {
	list, err := c.kubernetes.Discovery().ServerResourcesForGroupVersion(kind.GroupVersion().String())
	if err != nil {
		return metav1.APIResource{}, err
	}
	for _, resource := range list.APIResources {
		if resource.Kind == kind.Kind && !strings.Contains(resource.Name, "/") {
			return resource, nil
		}
	}
	return metav1.APIResource{}, fmt.Errorf("no resource has kind %s", kind)
}

// AwaitServed waits until objects of an applied CRD can be created.
func (c *Cluster) AwaitServed(t testing.TB, crd *unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	if err := c.awaitServed(ctx, crd); err != nil {
		t.Fatalf("CustomResourceDefinition %s: %v", crd.GetName(), err)
	}
}

// awaitServed waits until a CRD is established, and then for consequences that follow with a short delay and
// without a signal: its versions can be listed and are discovered.
func (c *Cluster) awaitServed(ctx context.Context, crd *unstructured.Unstructured) error {
	crds := c.Objects("customresourcedefinitions.v1.apiextensions.k8s.io", "")
	if err := crds.follow(ctx, crd.GetName(), func(o *unstructured.Unstructured) bool { return o != nil && Condition(o, "Established") == "True" }); err != nil {
		return fmt.Errorf("waiting for condition Established: %w", err)
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, version := range versions {
		fields, _ := version.(map[string]any)
		if fields["served"] != true {
			continue
		}
		gvk := schema.GroupVersionKind{Group: group, Kind: kind, Version: fmt.Sprint(fields["name"])}
		err := wait.PollUntilContextCancel(ctx, glance, true, func(ctx context.Context) (bool, error) {
			resource, err := c.serving(gvk)
			if err != nil {
				return false, nil
			}
			_, err = c.objects(gvk.GroupVersion().WithResource(resource.Name), "").client.List(ctx, metav1.ListOptions{Limit: 1})
			return !apierrors.IsNotFound(err), nil
		})
		if err != nil {
			return fmt.Errorf("waiting for %s to be served: %w", gvk, err)
		}
	}
	return nil
}

// Condition returns the status of an object's condition; empty if it has none of that type.
func Condition(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, each := range conditions {
		if fields, _ := each.(map[string]any); fields["type"] == kind {
			status, _ := fields["status"].(string)
			return status
		}
	}
	return ""
}

// text formats an object for people.
func text(object *unstructured.Unstructured) string {
	if object == nil {
		return "no object"
	}
	shown := object.DeepCopy()
	shown.SetManagedFields(nil)
	out, _ := json.MarshalIndent(shown.Object, "", "  ") // it came as JSON
	return string(out)
}

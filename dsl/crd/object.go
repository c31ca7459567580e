// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// inJSON returns the CRD in its JSON form, without a status.
func inJSON(crd *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	value, err := plain.Value(crd)
	if err != nil {
		return nil, fmt.Errorf("writing CRD: %w", err)
	}
	tree := value.(map[string]any) // a struct is an object in JSON
	delete(tree, "status")
	unstructured.RemoveNestedField(tree, "metadata", "creationTimestamp")
	return tree, nil
}

// Kind returns the kind of the objects that a CRD of [Build] describes.
func Kind(crd map[string]any) schema.GroupVersionKind {
	crdSpec, _ := crd["spec"].(map[string]any)
	group, _, _ := unstructured.NestedString(crdSpec, "group")
	kind, _, _ := unstructured.NestedString(crdSpec, "names", "kind")
	version, _ := first(crdSpec)["name"].(string)
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

// first returns a CRD's first version.
func first(crdSpec map[string]any) map[string]any {
	versions, _ := crdSpec["versions"].([]any)
	if len(versions) == 0 {
		return nil
	}
	version, _ := versions[0].(map[string]any)
	return version
}

// ObjectSchema returns the schema of the objects that a CRD of [Build] describes, with what the API
// server adds to every object: apiVersion, kind and metadata.
func ObjectSchema(crd map[string]any) (*spec.Schema, error) {
	crdSpec, _ := crd["spec"].(map[string]any)
	value, _, _ := unstructured.NestedFieldNoCopy(first(crdSpec), "schema", "openAPIV3Schema")
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	given := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(data, given); err != nil {
		return nil, fmt.Errorf("reading schema: %w", err)
	}
	s, err := internalForm(given)
	if err != nil {
		return nil, err
	}
	out := s.ToKubeOpenAPI()
	if out.Properties == nil {
		out.Properties = map[string]spec.Schema{}
	}
	out.Properties["apiVersion"] = *spec.StringProperty()
	out.Properties["kind"] = *spec.StringProperty()
	out.Properties["metadata"] = metadata()
	return out, nil
}

// metadata is the schema of what the API server keeps of every object.
func metadata() spec.Schema {
	texts := func() spec.Schema { return *spec.MapProperty(spec.StringProperty()) }
	flag, number, text, at := *spec.BooleanProperty(), *spec.Int64Property(), *spec.StringProperty(), *spec.DateTimeProperty()
	owner := object(map[string]spec.Schema{
		"apiVersion": text, "kind": text, "name": text, "uid": text, "controller": flag, "blockOwnerDeletion": flag,
	})
	manager := object(map[string]spec.Schema{
		"manager": text, "operation": text, "apiVersion": text, "time": at, "fieldsType": text, "subresource": text,
		"fieldsV1": free(),
	})
	return object(map[string]spec.Schema{
		"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text, "resourceVersion": text,
		"generation": number, "creationTimestamp": at, "deletionTimestamp": at, "deletionGracePeriodSeconds": number,
		"labels": texts(), "annotations": texts(),
		"ownerReferences": *spec.ArrayProperty(&owner), "finalizers": *spec.ArrayProperty(&text),
		"managedFields": *spec.ArrayProperty(&manager),
	})
}

func object(properties map[string]spec.Schema) spec.Schema {
	out := spec.Schema{}
	out.Type, out.Properties = spec.StringOrArray{"object"}, properties
	return out
}

func free() spec.Schema {
	out := spec.Schema{}
	out.Type = spec.StringOrArray{"object"}
	out.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	return out
}

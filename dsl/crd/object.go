// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/dsl/plain"
)

// inJSON returns the CRD in its JSON form, without a status.
func inJSON(crd *apiextensionsv1.CustomResourceDefinition) (map[string]any, error) {
	value, err := plain.Value(crd)
	tree, _ := value.(map[string]any)
	delete(tree, "status")
	return tree, err
}

// Objects returns the kind of the objects that a CRD of [Build] describes, and their schema with what the
// API server adds to every object: apiVersion, kind and metadata.
func Objects(crd map[string]any) (schema.GroupVersionKind, *spec.Schema, error) {
	given := apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd, &given); err != nil {
		return schema.GroupVersionKind{}, nil, fmt.Errorf("reading CRD: %w", err)
	}
	version := given.Spec.Versions[0]
	kind := schema.GroupVersionKind{Group: given.Spec.Group, Version: version.Name, Kind: given.Spec.Names.Kind}
	s, err := internalForm(version.Schema.OpenAPIV3Schema)
	if err != nil {
		return kind, nil, err
	}
	out := s.ToKubeOpenAPI()
	if out.Properties == nil {
		out.Properties = map[string]spec.Schema{}
	}
	out.Properties["apiVersion"] = *spec.StringProperty()
	out.Properties["kind"] = *spec.StringProperty()
	out.Properties["metadata"] = metadata()
	return kind, out, nil
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
		"fieldsV1": *spec.MapProperty(nil),
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

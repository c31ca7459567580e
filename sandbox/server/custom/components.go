// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/handwerk-dev/handwerk/sandbox/server/openapi"
)

// Components returns the schemas of the version's OpenAPI document. See [server.Documented].
func (f *form) Components() map[string]*spec.Schema { return maps.Clone(f.components()) }

// componentsOf returns the schemas of a version's OpenAPI document: those of its objects and of their lists, and those
// of metadata.
func componentsOf(crd *apiextensionsv1.CustomResourceDefinitionSpec, version *apiextensionsv1.CustomResourceDefinitionVersion, shape *structural.Structural) map[string]*spec.Schema {
	object := shape.Unfold().ToKubeOpenAPI()
	object.Properties = maps.Clone(object.Properties)
	headed(object, metav1.TypeMeta{}.SwaggerDoc())
	embed(object)
	list := listOf(crd, version)
	for kind, s := range map[string]*spec.Schema{crd.Names.Kind: object, crd.Names.ListKind: list} {
		s.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": crd.Group, "version": version.Name, "kind": kind}})
		if fields := selectable(version); len(fields) > 0 {
			s.AddExtension("x-kubernetes-selectable-fields", fields)
		}
	}
	out := metadata()
	out[modelName(crd, version, crd.Names.Kind)], out[modelName(crd, version, crd.Names.ListKind)] = object, list
	return out
}

// modelName returns the name of a kind in OpenAPI documents: the labels of its group come in reversed order.
func modelName(crd *apiextensionsv1.CustomResourceDefinitionSpec, version *apiextensionsv1.CustomResourceDefinitionVersion, kind string) string {
	labels := strings.Split(crd.Group, ".")
	slices.Reverse(labels)
	return strings.Join(append(labels, version.Name, kind), ".")
}

// listOf returns the schema of a list of objects.
func listOf(crd *apiextensionsv1.CustomResourceDefinitionSpec, version *apiextensionsv1.CustomResourceDefinitionVersion) *spec.Schema {
	items := spec.ArrayProperty(openapi.Reference(modelName(crd, version, crd.Names.Kind), "")).WithDescription(fmt.Sprintf(
		"List of %s. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md", crd.Names.Plural))
	out := new(spec.Schema).Typed("object", "").WithRequired("items").SetProperty("items", *items)
	out.WithDescription(fmt.Sprintf("%s is a list of %s", crd.Names.ListKind, crd.Names.Kind))
	headed(out, metav1.TypeMeta{}.SwaggerDoc())
	out.SetProperty("metadata", *openapi.Reference(openapi.Name(metav1.ListMeta{}), metav1.PartialObjectMetadataList{}.SwaggerDoc()["metadata"]))
	return out
}

// headed gives a schema the fields of each object, with the texts of its version and kind.
func headed(s *spec.Schema, texts map[string]string) {
	for _, name := range []string{"apiVersion", "kind"} {
		s.SetProperty(name, *spec.StringProperty().WithDescription(texts[name]))
	}
	s.SetProperty("metadata", *openapi.Reference(openapi.Name(metav1.ObjectMeta{}), metav1.PartialObjectMetadata{}.SwaggerDoc()["metadata"]))
}

// embedded are the texts of the version and the kind of an embedded object.
func embedded() map[string]string {
	const conventions = " More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
	return map[string]string{
		"apiVersion": "apiVersion defines the versioned schema of this representation of an object." + conventions + "#resources",
		"kind":       "kind is a string value representing the type of this object. In CamelCase." + conventions + "#types-kinds",
	}
}

// embed gives the embedded objects below a schema the fields of each object.
func embed(s *spec.Schema) {
	for name, property := range s.Properties {
		embed(&property)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		embed(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		embed(s.AdditionalProperties.Schema)
	}
	if is, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); !is {
		return
	}
	headed(s, embedded())
	for _, name := range []string{"kind", "apiVersion"} {
		if !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
}

// selectable are the fields that a field selector may use.
func selectable(version *apiextensionsv1.CustomResourceDefinitionVersion) (out []any) {
	for _, f := range version.SelectableFields {
		out = append(out, map[string]any{"fieldPath": strings.TrimPrefix(f.JSONPath, ".")})
	}
	return out
}

// metadata returns the schemas of the metadata of objects and lists. The Go types do not say how lists are merged.
func metadata() map[string]*spec.Schema {
	out := openapi.Components(metav1.ObjectMeta{}, metav1.ListMeta{})
	object := out[openapi.Name(metav1.ObjectMeta{})]
	extend := func(field, extension string, value any) {
		property := object.Properties[field]
		property.AddExtension(extension, value)
		object.Properties[field] = property
	}
	extend("finalizers", "x-kubernetes-list-type", "set")
	extend("managedFields", "x-kubernetes-list-type", "atomic")
	extend("ownerReferences", "x-kubernetes-list-type", "map")
	extend("ownerReferences", "x-kubernetes-list-map-keys", []any{"uid"})
	out[openapi.Name(metav1.OwnerReference{})].AddExtension("x-kubernetes-map-type", "atomic")
	return out
}

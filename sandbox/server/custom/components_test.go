// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package custom_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/handwerk-dev/handwerk/sandbox/server"
	"github.com/handwerk-dev/handwerk/sandbox/server/custom"
)

// componentsOf returns the schemas of the document of a CRD's version v1.
func componentsOf(t *testing.T, version string) map[string]*spec.Schema {
	t.Helper()
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(crd(version)), &definition.Object); err != nil {
		t.Fatal(err)
	}
	forms, err := custom.Schemas(definition)
	if err != nil {
		t.Fatal(err)
	}
	return forms["v1"].(server.Documented).Components()
}

// asJSON is a value in JSON, without the texts that are the same for each object.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	out := string(data)
	const conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#"
	for _, text := range []struct{ is, as string }{
		{`"apiVersion":{"description":"APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: ` + conventions + `resources","type":"string"}`, "VERSION"},
		{`"kind":{"description":"Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: ` + conventions + `types-kinds","type":"string"}`, "KIND"},
		{`"metadata":{"description":"Standard object's metadata. More info: ` + conventions + `metadata","allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]}`, "METADATA"},
	} {
		out = strings.ReplaceAll(out, text.is, text.as)
	}
	return out
}

func TestTheDocumentHasTheSchemasOfARealServer(t *testing.T) {
	const kinds = `"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Foo","version":"v1"}]`
	for _, c := range []struct{ name, version, want string }{
		{
			"fields have their texts, types, defaults and values", specOf("description: The wish.\nproperties: {color: {type: string, enum: [red, blue], default: red}, count: {type: integer, format: int32, minimum: 0}}"),
			`{"type":"object","properties":{VERSION,KIND,METADATA,"spec":{"description":"The wish.","type":"object","properties":{"color":{"type":"string","default":"red","enum":["red","blue"]},"count":{"type":"integer","format":"int32","minimum":0}}}},` + kinds + `}`,
		},
		{
			"lists, maps and rules have the extensions of Kubernetes", specOf(`properties:
  ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port], items: {type: object, required: [port], properties: {port: {type: integer}}}}
  size: {x-kubernetes-int-or-string: true}
  any: {type: object, x-kubernetes-preserve-unknown-fields: true}
x-kubernetes-validations: [{rule: self.ports.size() < 10, message: too many}]`),
			`{"type":"object","properties":{VERSION,KIND,METADATA,"spec":{"type":"object","properties":{"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"ports":{"type":"array","items":{"type":"object","required":["port"],"properties":{"port":{"type":"integer"}}},"x-kubernetes-list-map-keys":["port"],"x-kubernetes-list-type":"map"},"size":{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}},"x-kubernetes-validations":[{"rule":"self.ports.size() \u003c 10","message":"too many"}]}},` + kinds + `}`,
		},
		{
			"an embedded object has a head and metadata", specOf("properties: {pod: {type: object, x-kubernetes-embedded-resource: true}}"),
			`{"type":"object","properties":{VERSION,KIND,METADATA,"spec":{"type":"object","properties":{"pod":{"type":"object","required":["kind","apiVersion"],"properties":{"apiVersion":{"description":"apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources","type":"string"},"kind":{"description":"kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds","type":"string"},METADATA},"x-kubernetes-embedded-resource":true}}}},` + kinds + `}`,
		},
		{
			"fields of field selectors are named", specOf("properties: {color: {type: string}}") + "\nselectableFields: [{jsonPath: .spec.color}]",
			`{"type":"object","properties":{VERSION,KIND,METADATA,"spec":{"type":"object","properties":{"color":{"type":"string"}}}},` + kinds + `,"x-kubernetes-selectable-fields":[{"fieldPath":"spec.color"}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, asJSON(t, componentsOf(t, c.version)["com.example.v1.Foo"])); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheDocumentHasListsAndMetadata(t *testing.T) {
	const meta = "io.k8s.apimachinery.pkg.apis.meta.v1."
	got := componentsOf(t, specOf("properties: {}"))
	const list = `{"description":"FooList is a list of Foo","type":"object","required":["items"],"properties":{VERSION,"items":{"description":"List of foos. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md","type":"array","items":{"$ref":"#/components/schemas/com.example.v1.Foo"}},KIND,"metadata":{"description":"Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds","allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}]}},"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"FooList","version":"v1"}]}`
	if diff := cmp.Diff(list, asJSON(t, got["com.example.v1.FooList"])); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{
		"finalizers":      `{"x-kubernetes-list-type":"set","x-kubernetes-patch-strategy":"merge"}`,
		"managedFields":   `{"x-kubernetes-list-type":"atomic"}`,
		"ownerReferences": `{"x-kubernetes-list-map-keys":["uid"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"uid","x-kubernetes-patch-strategy":"merge"}`,
	} {
		if diff := cmp.Diff(want, asJSON(t, got[meta+"ObjectMeta"].Properties[name].Extensions)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, name := range []string{"FieldsV1", "ListMeta", "ManagedFieldsEntry", "OwnerReference", "Time"} {
		if got[meta+name] == nil {
			t.Errorf("no %s", name)
		}
	}
}

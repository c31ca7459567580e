// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/handwerk-dev/handwerk/sandbox/server/openapi"
)

func TestGoTypesHaveSchemas(t *testing.T) {
	const ref = `"$ref":"#/components/schemas/io.k8s.`
	for _, c := range []struct {
		name  string
		value any
		want  string
	}{
		{
			"a required field has its zero as the default, and the texts are those of the field", corev1.HTTPHeader{},
			`{"description":"HTTPHeader describes a custom header to be used in HTTP probes","type":"object","required":["name","value"],"properties":{"name":{"description":"The header field name. This will be canonicalized upon output, so case-variant names will be understood as the same header.","type":"string","default":""},"value":{"description":"The header field value","type":"string","default":""}}}`,
		},
		{
			"an optional field has no default", metav1.Preconditions{},
			`{"description":"Preconditions must be fulfilled before an operation (update, delete, etc.) is carried out.","type":"object","properties":{"resourceVersion":{"description":"Specifies the target ResourceVersion","type":"string"},"uid":{"description":"Specifies the target UID.","type":"string"}}}`,
		},
		{"a scalar has the type and the format of its JSON", metav1.Time{}, `{"type":"string","format":"date-time"}`},
		{"a scalar can have one of several types", intstr.IntOrString{}, `{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]}`},
		{
			"a field of another type refers to it, with a text of its own", corev1.TCPSocketAction{},
			`{"description":"TCPSocketAction describes an action based on opening a socket","type":"object","required":["port"],"properties":{"host":{"description":"Optional: Host name to connect to, defaults to the pod IP.","type":"string"},"port":{"description":"Number or name of the port to access on the container. Number must be in the range 1 to 65535. Name must be an IANA_SVC_NAME.","allOf":[{` + ref + `apimachinery.pkg.util.intstr.IntOrString"}]}}}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := json.Marshal(openapi.Components(c.value)[openapi.Name(c.value)])
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(data)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestComponentsAreAllTypesThatAreReferredTo(t *testing.T) {
	const meta, core = "io.k8s.apimachinery.pkg.apis.meta.v1.", "io.k8s.api.core.v1."
	got := openapi.Components(corev1.ConfigMap{})
	want := []string{core + "ConfigMap", meta + "FieldsV1", meta + "ManagedFieldsEntry", meta + "ObjectMeta", meta + "OwnerReference", meta + "Time"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Error(diff)
	}
	fields := got[core+"ConfigMap"].Properties
	for field, want := range map[string]string{
		"apiVersion": "string ", "kind": "string ", "immutable": "boolean ", "data": "object of string ", "binaryData": "object of string byte",
	} {
		property := fields[field]
		text := property.Type[0] + " " + property.Format
		if values := property.AdditionalProperties; values != nil {
			text = property.Type[0] + " of " + values.Schema.Type[0] + " " + values.Schema.Format
		}
		if text != want {
			t.Errorf("%s is %q, want %q", field, text, want)
		}
	}
	owners := got[meta+"ObjectMeta"].Properties["ownerReferences"]
	if key, _ := owners.Extensions.GetString("x-kubernetes-patch-merge-key"); key != "uid" || owners.Items.Schema.Ref.String() != "#/components/schemas/"+meta+"OwnerReference" {
		t.Errorf("the owners are merged by %q, and refer to %s", key, owners.Items.Schema.Ref.String())
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// crd has two versions, of which only v1 keeps the generation.
const crd = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "foos.example.com"},
	"spec": {"versions": [
		{"name": "v1beta1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"observedGeneration": {"type": "integer"}, "status": {"type": "object"}}}}},
		{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"status": {"type": "object", "properties": {"observedGeneration": {"type": "integer"}}}}}}},
		{"name": "v0"}
	]}}`

func TestObservedGeneration(t *testing.T) {
	of := func(version, resource string) Resource {
		return Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: version, Resource: resource}, Status: true}
	}
	without := of("v1", "foos")
	without.Status = false
	crds := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	tests := map[string]struct {
		resource Resource
		err      error
		want     bool
		wantErr  string
	}{
		"the schema has the field":                  {resource: of("v1", "foos"), want: true},
		"the schema has it elsewhere":               {resource: of("v1beta1", "foos")},
		"the version has no schema":                 {resource: of("v0", "foos")},
		"the CRD has no such version":               {resource: of("v9", "foos")},
		"the version has no status subresource":     {resource: without},
		"the resource is not from a CRD":            {resource: of("v1", "bars")},
		"the CRD may not be read":                   {resource: of("v1", "foos"), err: apierrors.NewForbidden(crds, "foos.example.com", nil)},
		"the server cannot be asked, which is told": {resource: of("v1", "foos"), err: errors.New("it is down"), wantErr: "reading the CRD of foos.example.com: it is down"},
	}
	for title, test := range tests {
		t.Run(title, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON([]byte(crd)); err != nil {
				t.Fatal(err)
			}
			client := fake.NewSimpleDynamicClient(runtime.NewScheme(), object)
			client.PrependReactor("get", "customresourcedefinitions", func(clienttesting.Action) (bool, runtime.Object, error) {
				return test.err != nil, nil, test.err
			})
			got, err := New(nil, client, nil).ObservedGeneration(t.Context(), test.resource)
			check(t, err, test.wantErr, false)
			if got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// crd has two versions; only v1 keeps the generation.
const crd = `{
	"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
	"metadata": {"name": "foos.example.com"},
	"spec": {"versions": [
		{"name": "v1beta1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"observedGeneration": {"type": "integer"}, "status": {"type": "object"}}}}},
		{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {
			"status": {"type": "object", "properties": {"observedGeneration": {"type": "integer"}, "conditions": {"type": "array"}}}}}}},
		{"name": "v0"}
	]}}`

func TestObservedGeneration(t *testing.T) {
	of := func(version, resource string) Resource {
		return Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: version, Resource: resource}, Status: true}
	}
	crds := schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
	tests := map[string]struct {
		resource Resource
		err      error
		want     bool
		wantErr  string
	}{
		"the schema has the field":                      {resource: of("v1", "foos"), want: true},
		"the schema has it elsewhere":                   {resource: of("v1beta1", "foos")},
		"the version has no schema":                     {resource: of("v0", "foos")},
		"the CRD has no such version":                   {resource: of("v9", "foos")},
		"the resource is not from a CRD":                {resource: of("v1", "bars")},
		"the CRD may not be read, which is reported":    {resource: of("v1", "foos"), err: apierrors.NewForbidden(crds, "foos.example.com", nil), wantErr: "forbidden"},
		"the server cannot be asked, which is reported": {resource: of("v1", "foos"), err: errors.New("it is down"), wantErr: "reading the CRD of foos.example.com: it is down"},
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
			got, err := New(publishing(t, &publisher{}), client, nil).Status(t.Context(), test.resource)
			check(t, err, test.wantErr, false)
			if got.Generation != test.want {
				t.Errorf("got %v, want %v", got.Generation, test.want)
			}
		})
	}
}

// TestConditions holds that it is asked once, again after the catalog was invalidated, and that a
// missing right is reported.
func TestConditions(t *testing.T) {
	of := func(version, resource string) Resource {
		return Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: version, Resource: resource}}
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON([]byte(crd)); err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), object)
	asked, failure := 0, error(nil)
	client.PrependReactor("get", "customresourcedefinitions", func(clienttesting.Action) (bool, runtime.Object, error) {
		asked++
		return failure != nil, nil, failure
	})
	c := New(publishing(t, &publisher{}), client, nil)
	wants := func(r Resource, want bool, requests int) {
		t.Helper()
		got, err := c.Status(t.Context(), r)
		if got.Conditions.Kept != want || err != nil || asked != requests {
			t.Errorf("%v: got %v, %v after %d requests, want %v after %d", r.GVR, got, err, asked, want, requests)
		}
	}
	wants(of("v1", "foos"), true, 1)
	wants(of("v1", "foos"), true, 1)
	wants(of("v1beta1", "foos"), false, 2)
	wants(of("v1", "bars"), false, 3)
	wants(of("v1", "bars"), false, 3)
	c.Invalidate()
	wants(of("v1", "foos"), true, 4)
	c.Invalidate()
	failure = apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "foos.example.com", nil)
	if _, err := c.Status(t.Context(), of("v1", "foos")); !apierrors.IsForbidden(err) {
		t.Errorf("the error is %v", err)
	}
	failure = nil
	wants(of("v1", "foos"), true, 6)
}

// TestConditionsByWhatIsPublished holds that those who may not read CRDs find out as well, and that
// the conditions of built-in kinds belong to no other operator.
func TestConditionsByWhatIsPublished(t *testing.T) {
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	client.PrependReactor("get", "customresourcedefinitions", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "customresourcedefinitions"}, "x", nil)
	})
	document := `{"components": {"schemas": {"Foo": {"type": "object",
		"x-kubernetes-group-version-kind": [{"group": "GROUP", "version": "v1", "kind": "KIND"}],
		"properties": {"status": {"type": "object", "properties": {"conditions": {"type": "array"}}}}}}}}`
	made := func(group, kind string) string {
		return strings.NewReplacer("GROUP", group, "KIND", kind).Replace(document)
	}
	c := New(publishing(t, &publisher{documents: map[string]string{
		"apis/example.com/v1": made("example.com", "Foo"), "apis/apps/v1": made("apps", "Deployment"),
	}}), client, nil)
	for kind, want := range map[schema.GroupVersionKind]bool{
		{Group: "example.com", Version: "v1", Kind: "Foo"}: true,
		{Group: "apps", Version: "v1", Kind: "Deployment"}: false,
	} {
		got, err := c.Status(t.Context(), Resource{GVR: kind.GroupVersion().WithResource("x"), Kind: kind.Kind})
		if got.Conditions.Kept != want || got.Conditions.Lacks != "" || err != nil {
			t.Errorf("%s: got %v, %v", kind, got, err)
		}
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/sandbox/server/openapi"
)

// operations returns a line for each operation: its name, the number of its own parameters, and the codes of its answers.
func operations(paths map[string]any) (out []string) {
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		for _, method := range []string{"get", "put", "post", "patch", "delete"} {
			operation, is := paths[path].(map[string]any)[method].(map[string]any)
			if !is {
				continue
			}
			parameters, _ := operation["parameters"].([]any)
			codes := slices.Sorted(maps.Keys(operation["responses"].(map[string]any)))
			out = append(out, fmt.Sprintf("%s %s %s %d %s", method, path, operation["operationId"], len(parameters), strings.Join(codes, " ")))
		}
	}
	return out
}

// TestOperationsAreThoseOfARealServer compares them with those in the document of Kubernetes 1.37 about Deployments.
func TestOperationsAreThoseOfARealServer(t *testing.T) {
	want, err := os.ReadFile("testdata/deployments.txt")
	if err != nil {
		t.Fatal(err)
	}
	version := schema.GroupVersion{Group: "apps", Version: "v1"}
	kind, all := version.WithKind("Deployment"), []string{"get", "put", "patch"}
	got := operations(openapi.Paths(version, []openapi.Resource{{
		Kind: kind, Plural: "deployments", Namespaced: true, Collection: true, Model: "a.Deployment", List: "a.DeploymentList",
		Subresources: []openapi.Subresource{{Name: "status", Kind: kind, Methods: all}, {Name: "scale", Kind: kind, Methods: all}},
	}}))
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), got); diff != "" {
		t.Errorf("operations (-real +got):\n%s", diff)
	}
}

func TestOperationsOfACRDHaveItsGroupInTheirNames(t *testing.T) {
	version := schema.GroupVersion{Group: "my-shop.example.com", Version: "v1beta1"}
	paths := openapi.Paths(version, []openapi.Resource{{Kind: version.WithKind("Order"), Plural: "orders", Custom: true, Model: "a.Order"}})
	want := []string{
		"get /apis/my-shop.example.com/v1beta1/ getMyShopExampleComV1beta1APIResources 0 200 401",
		"get /apis/my-shop.example.com/v1beta1/orders listMyShopExampleComV1beta1Order 11 200 401",
		"post /apis/my-shop.example.com/v1beta1/orders createMyShopExampleComV1beta1Order 3 200 201 202 401",
		"get /apis/my-shop.example.com/v1beta1/orders/{name} readMyShopExampleComV1beta1Order 1 200 401",
		"put /apis/my-shop.example.com/v1beta1/orders/{name} replaceMyShopExampleComV1beta1Order 3 200 201 401",
		"patch /apis/my-shop.example.com/v1beta1/orders/{name} patchMyShopExampleComV1beta1Order 4 200 401",
		"delete /apis/my-shop.example.com/v1beta1/orders/{name} deleteMyShopExampleComV1beta1Order 5 200 202 401",
	}
	if diff := cmp.Diff(want, operations(paths)); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	post := openapi.V2Paths(paths)["/apis/my-shop.example.com/v1beta1/orders"].(map[string]any)["post"].(map[string]any)
	body := post["parameters"].([]any)[0]
	if diff := cmp.Diff(map[string]any{"name": "body", "in": "body", "schema": map[string]any{"$ref": "#/definitions/a.Order"}}, body); diff != "" {
		t.Errorf("the body in v2 (-want +got):\n%s", diff)
	}
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/handwerk-dev/handwerk/sandbox"
)

// beside are objects that do not concern the operator sites, and its register, which says that it has made Services.
const beside = `
apiVersion: v1
kind: ResourceQuota
metadata: {name: web, namespace: shop}
---
apiVersion: v1
kind: Service
metadata: {name: blog, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: sites-children, namespace: ops}
data: {sites.example.com: "Service Deployment.apps"}
`

// TestAClusterIsRead holds what is read of a cluster, and that nothing is written to it.
func TestAClusterIsRead(t *testing.T) {
	op, _ := read(t, sites)
	s := sandbox.New(t, sandbox.Options{NoWorkloads: true, Record: true})
	objects := append(objectsOf(t, site+"---"+beside), missingCRDs(op, nil)...)
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return cmpKind(b) - cmpKind(a) })
	for _, o := range objects {
		if err := s.Load(runtime.Object(o)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Cluster{Config: s.Config(), Namespaces: []string{"handwerk-system", "ops"}}.Read(t.Context(), op)
	if err != nil || len(got.Warnings) > 0 {
		t.Fatal(err, got.Warnings)
	}
	var names []string
	for _, o := range got.List {
		if o.GetKind() != "Namespace" {
			names = append(names, nameOf(o.GetKind(), o.GetNamespace(), o.GetName()))
		}
	}
	slices.Sort(names)
	want := []string{"ConfigMap ops/sites-children", "CustomResourceDefinition sites.example.com", "Service default/kubernetes", "Service shop/blog", "Site shop/blog", "Site shop/docs"}
	if diff := cmp.Diff(want, names); diff != "" || got.Namespace != "ops" {
		t.Errorf("namespace %s, objects (-want +got):\n%s", got.Namespace, diff)
	}
	for _, r := range s.Requests() {
		if r.Verb != "get" && r.Verb != "list" {
			t.Errorf("the cluster got %s %s", r.Verb, r.Resource.Resource)
		}
	}
}

func cmpKind(o *unstructured.Unstructured) int {
	if o.GetKind() == "CustomResourceDefinition" {
		return 1
	}
	return 0
}

// TestObjectsThatCannotBeReadAreWarnings holds that a plan says which right its user lacks.
func TestObjectsThatCannotBeReadAreWarnings(t *testing.T) {
	op, _ := read(t, sites)
	s := sandbox.New(t, sandbox.Options{NoWorkloads: true, CRDs: nil})
	for _, crd := range missingCRDs(op, nil) {
		if err := s.Load(crd); err != nil {
			t.Fatal(err)
		}
	}
	defer s.Fail(sandbox.Fault{Verb: "list", Resource: "secrets", Code: 403})()
	got, err := Cluster{Config: s.Config(), Namespaces: []string{"ops"}}.Read(t.Context(), op)
	if err != nil || len(got.Warnings) != 1 {
		t.Fatalf("%v, warnings %q", err, got.Warnings)
	}
}

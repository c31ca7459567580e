// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/crd"
	"github.com/handwerk-dev/handwerk/dsl/form"
	"github.com/handwerk-dev/handwerk/dsl/plain"
)

var webapps = dsl.ResourceName{Resource: "webapps", Version: "v1alpha1", Group: "example.com"}

// read reads YAML into plain values.
func read(t testing.TB, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	value, err := plain.Value(tree)
	if err != nil {
		t.Fatal(err)
	}
	if value == nil {
		return nil
	}
	return value.(map[string]any)
}

// fields reads fields in short form.
func fields(t testing.TB, tree map[string]any) crd.Fields {
	t.Helper()
	var out crd.Fields
	readInto(t, tree, &out)
	return out
}

// whole reads a schema in the form of Kubernetes.
func whole(t testing.TB, text string) *crd.OpenAPI {
	t.Helper()
	out := &crd.OpenAPI{}
	readInto(t, read(t, text), out)
	return out
}

// readInto reads plain values, which must have the form that is wanted.
func readInto(t testing.TB, tree map[string]any, out any) {
	t.Helper()
	root := form.Node(tree)
	d := form.NewDecoder(root)
	d.Value("", root, out)
	for _, f := range d.Faults {
		t.Errorf("%s: %s", f.At, f.Message)
	}
}

// build makes a CRD that must be good.
func build(t *testing.T, s *crd.Schema) map[string]any {
	t.Helper()
	if s.Kind == "" {
		s.Kind = "WebApp"
	}
	out, faults := crd.Build(webapps, s)
	for _, f := range faults {
		t.Errorf("%v: %s", f.Path, f.Message)
	}
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// versionOf returns the CRD's only version.
func versionOf(t *testing.T, tree map[string]any) map[string]any {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(tree, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("there are %d versions, want one (%v)", len(versions), err)
	}
	return versions[0].(map[string]any)
}

// properties returns the schemas of what is in spec, or in status.
func properties(t *testing.T, tree map[string]any, section string) map[string]any {
	t.Helper()
	out, _, err := unstructured.NestedMap(versionOf(t, tree), "schema", "openAPIV3Schema", "properties", section, "properties")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func mustEqual(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

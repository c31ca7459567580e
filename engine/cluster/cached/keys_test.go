// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/dsl"
)

// TestKeysAreWhatTheyStandFor holds that a key with a quote, a backslash or a control character in it is found, however the object came.
func TestKeysAreWhatTheyStandFor(t *testing.T) {
	const key = "a\\b\n\"c"
	form := Form{Keep: FormatPaths([]dsl.Path{{"spec", key}})}.WithDefaults()
	transformer, err := new(Compressor).NewTransformer(form, schema.GroupVersion{Version: "v1"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	tree := map[string]any{"apiVersion": "v1", "kind": "Foo", "metadata": map[string]any{"uid": "u", "annotations": map[string]any{key: "x"}}, "spec": map[string]any{key: "y"}}
	carried := Carrier(transformer.Convert([]byte(`{"apiVersion":"v1","kind":"Foo","metadata":{"uid":"u","annotations":{"a\\b\n\"c":"x"}},"spec":{"a\\b\n\"c":"y","other":1}}`)))
	for name, in := range map[string]*unstructured.Unstructured{"as a tree": {Object: tree}, "as bytes": &carried} {
		t.Run(name, func(t *testing.T) {
			out, err := transformer.Transform(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree, out.(*Object).Tree().Object); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
			if got := out.(*Object).GetAnnotations()[key]; got != "x" {
				t.Errorf("the annotation is %q", got)
			}
		})
	}
}

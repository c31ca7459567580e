// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached_test

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// TestTheDigestIsThatOfWhatIsShown holds that an object in a cache has the digest of the server's object as the cache shows it, whatever the
// managedFields are, and another one when anything else differs.
func TestTheDigestIsThatOfWhatIsShown(t *testing.T) {
	forms := map[string]cached.Form{
		"whole objects":     {},
		"some fields":       {Keep: "spec.size"},
		"own managedFields": {Markers: "op"},
	}
	object := func(change func(o *unstructured.Unstructured)) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": int64(1), "list": []any{"a", 0.5}},
			"metadata": map[string]any{"name": "web", "resourceVersion": "7", "labels": map[string]any{"a": "b"}},
		}}
		if change != nil {
			change(o)
		}
		return o
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			transformer, err := new(cached.Compressor).NewTransformer(form, schema.GroupVersion{Group: "example.com", Version: "v1"}, logr.Discard())
			if err != nil {
				t.Fatal(err)
			}
			in, err := transformer.Transform(object(func(o *unstructured.Unstructured) {
				o.Object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{"manager": "op", "operation": "Update"}}
			}))
			if err != nil {
				t.Fatal(err)
			}
			held, shows := in.(*cached.Object), form.Shows()
			if got, want := held.Digest(), cached.DigestOf(shows(object(nil))); got != want || got == 0 {
				t.Errorf("the digest is %x, want %x", got, want)
			}
			for what, change := range map[string]func(o *unstructured.Unstructured){
				"version": func(o *unstructured.Unstructured) { o.SetResourceVersion("8") },
				"label":   func(o *unstructured.Unstructured) { o.SetLabels(map[string]string{"a": "c"}) },
			} {
				if held.Digest() == cached.DigestOf(shows(object(change))) {
					t.Errorf("another %s makes no other digest", what)
				}
			}
		})
	}
}

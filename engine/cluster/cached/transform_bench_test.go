// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package cached

import (
	"encoding/json"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func BenchmarkTransform(b *testing.B) {
	transformer, err := new(Compressor).NewTransformer(Form{}, foos, logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	u := sample(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := transformer.Transform(u); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodingJSON(b *testing.B) {
	u := sample(b)
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(u.Object); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTree(b *testing.B) {
	o := hold(b, Form{}, sample(b))
	b.ReportAllocs()
	for b.Loop() {
		if o.Tree() == nil {
			b.Fatal("no tree")
		}
	}
}

func BenchmarkLabels(b *testing.B) {
	o := hold(b, Form{}, sample(b))
	b.ReportAllocs()
	for b.Loop() {
		if len(o.GetLabels()) != 4 {
			b.Fatal("labels are missing")
		}
	}
}

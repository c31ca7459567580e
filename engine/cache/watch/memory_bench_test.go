// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/cluster/cached"
)

// samples makes objects that differ in their identity and in their length. Each is of about
// 1.5 KB without its managedFields, as they come: half of it metadata, the rest in small maps.
func samples(b *testing.B) func(i int, owned bool) *unstructured.Unstructured {
	text, err := os.ReadFile("../../../dsl/plain/scan/testdata/foo.json")
	if err != nil {
		b.Fatal(err)
	}
	return func(i int, owned bool) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			b.Fatal(err)
		}
		u.SetName(fmt.Sprintf("foo-of-some-length-%05d", i))
		u.SetNamespace(fmt.Sprintf("namespace-%d", i%10))
		u.SetUID(types.UID(fmt.Sprintf("0b9f2f5c-91d6-4d2e-a2ce-%012d", i)))
		u.SetResourceVersion(fmt.Sprint(100000 + i))
		annotations := u.GetAnnotations()
		annotations["example.com/note"] = strings.Repeat("x", 60+i%256)
		u.SetAnnotations(annotations)
		refs := u.GetOwnerReferences()
		refs[0].Name, refs[0].UID = fmt.Sprintf("parent-%05d", i), types.UID(fmt.Sprintf("7f3ad3c2-2c11-4b5e-8c6e-%012d", i))
		if !owned {
			refs = nil
		}
		u.SetOwnerReferences(refs)
		return u
	}
}

func heap() uint64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMemoryPerObject measures what an object costs in memory, everything included: its
// bytes, its routing metadata, its key, its place in the store and in the index of owners. The
// ratio is to the object's JSON without managedFields.
func BenchmarkMemoryPerObject(b *testing.B) {
	profiles := map[string]struct {
		src   Source
		owned bool
	}{
		"compact":                {src: Source{GVR: foos}},
		"compact, each owned":    {src: Source{GVR: foos}, owned: true},
		"compact, keep replicas": {src: Source{GVR: foos, Form: cached.Form{Keep: "spec.replicas"}}},
		"metadata":               {src: Source{GVR: foos, Form: cached.Form{Profile: dsl.CacheMetadata}}},
		"live":                   {src: Source{GVR: foos, Form: cached.Form{Profile: dsl.CacheLive}}},
	}
	for name, p := range profiles {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				measure(b, p.src, p.owned)
			}
		})
	}
}

func measure(b *testing.B, src Source, owned bool) {
	const count = 5000
	s, sample := newServer(), samples(b)
	s.dynamic.PrependReactor("list", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "FooList"}}
		list.SetResourceVersion("1000")
		for i := range count {
			list.Items = append(list.Items, *sample(i, owned))
		}
		return true, list, nil
	})
	s.metadata.PrependReactor("list", "foos", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: "1000"}}
		for i := range count {
			list.Items = append(list.Items, runtime.RawExtension{Object: as(sample(i, owned), true)})
		}
		return true, list, nil
	})
	before := heap()
	set := New(Settings{Dynamic: s.dynamic, Metadata: s.metadata})
	h, err := set.Open(b.Context(), src, ignore)
	if err != nil {
		b.Fatal(err)
	}
	if !h.WaitSynced(b.Context()) {
		b.Fatal("it was not listed")
	}
	after := heap()
	var size int
	for i := range count {
		u := sample(i, owned)
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
		text, err := json.Marshal(u.Object)
		if err != nil {
			b.Fatal(err)
		}
		size += len(text)
	}
	if h.Len() != count {
		b.Fatalf("the cache has %d objects, want %d", h.Len(), count)
	}
	set.Close()
	per := float64(after-before) / count
	b.ReportMetric(per, "bytes/object")
	b.ReportMetric(per/(float64(size)/count), "ratio")
	b.ReportMetric(float64(size)/count, "JSON-bytes/object")
}

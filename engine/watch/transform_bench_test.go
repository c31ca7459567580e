// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clienttesting "k8s.io/client-go/testing"

	"github.com/handwerk-dev/handwerk/dsl"
)

// sample is an object of about 1.5 KB without its managedFields, as they come: half of it
// metadata, the rest in small maps.
func sample(i int, owned bool) *unstructured.Unstructured {
	owner := ""
	if owned {
		owner = fmt.Sprintf(`"ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Parent", "name": "parent-%05d",
			"uid": "7f3ad3c2-2c11-4b5e-8c6e-%012d", "controller": true, "blockOwnerDeletion": true}],`, i, i)
	}
	text := fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {
		"name": "foo-of-some-length-%05d", "namespace": "namespace-%d", "uid": "0b9f2f5c-91d6-4d2e-a2ce-%012d",
		"resourceVersion": "%d", "generation": 3, "creationTimestamp": "2025-11-20T10:11:12Z", %s
		"labels": {"app.kubernetes.io/name": "foo", "app.kubernetes.io/instance": "foo-%05d", "app.kubernetes.io/managed-by": "handwerk", "tier": "gold"},
		"annotations": {"foo.handwerk.dev/state": "{\"handwerk\":1,\"base\":\"%032d\"}", "example.com/note": "%s"},
		"finalizers": ["foo.handwerk.dev/finalizer"],
		"managedFields": [{"manager": "kubectl", "operation": "Apply", "apiVersion": "example.com/v1", "time": "2025-11-20T10:11:12Z",
			"fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:template": {"f:image": {}}}}}]},
		"spec": {"replicas": 3, "deploymentName": "foo-%05d", "paused": false, "weight": 0.5,
			"template": {"image": "registry.example.com/team/foo:v1.2.3", "args": ["--verbose", "--listen=:8080", "--config=/etc/foo/config.yaml"],
				"env": [{"name": "A", "value": "%s"}, {"name": "B", "value": "b"}],
				"resources": {"limits": {"cpu": "500m", "memory": "128Mi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}}},
		"status": {"observedGeneration": 3, "availableReplicas": 3, "conditions": [
			{"type": "Ready", "status": "True", "reason": "Rollout", "message": "3 of 3 replicas are available", "lastTransitionTime": "2025-11-20T10:11:15Z", "observedGeneration": 3},
			{"type": "Progressing", "status": "False", "reason": "Done", "message": "", "lastTransitionTime": "2025-11-20T10:11:15Z", "observedGeneration": 3}]}}`,
		i, i%10, i, 100000+i, owner, i, i, strings.Repeat("x", 60+i%256), i, strings.Repeat("y", 40))
	var tree map[string]any
	if err := utiljson.Unmarshal([]byte(text), &tree); err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: tree}
}

func BenchmarkTransform(b *testing.B) {
	t, err := newTransformer(Source{}.withDefaults(), logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	u := sample(1, true)
	b.ReportAllocs()
	for b.Loop() {
		t.compact(u)
	}
}

func BenchmarkEncodingJSON(b *testing.B) {
	u := sample(1, true)
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(u.Object); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTree(b *testing.B) {
	t, err := newTransformer(Source{}.withDefaults(), logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	o := t.compact(sample(1, true))
	b.ReportAllocs()
	for b.Loop() {
		if o.Tree() == nil {
			b.Fatal("no tree")
		}
	}
}

func BenchmarkLabels(b *testing.B) {
	t, err := newTransformer(Source{}.withDefaults(), logr.Discard())
	if err != nil {
		b.Fatal(err)
	}
	o := t.compact(sample(1, true))
	b.ReportAllocs()
	for b.Loop() {
		if len(o.GetLabels()) != 4 {
			b.Fatal("labels are missing")
		}
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
		"compact, keep replicas": {src: Source{GVR: foos, Keep: "spec.replicas"}},
		"metadata":               {src: Source{GVR: foos, Profile: dsl.CacheMetadata}},
		"live":                   {src: Source{GVR: foos, Profile: dsl.CacheLive}},
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
	s := newServer()
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
	h, err := set.Open(b.Context(), src, func(Event) {})
	if err != nil {
		b.Fatal(err)
	}
	if err := h.WaitSynced(b.Context()); err != nil {
		b.Fatal(err)
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

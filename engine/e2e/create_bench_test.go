// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// childrenIn reaches the ConfigMaps of a namespace.
func childrenIn(namespace string) dynamic.ResourceInterface {
	return plane.Dynamic().Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
}

// madeFrom is a ConfigMap of about 1 KB.
func madeFrom(namespace, name, version string, fields ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": strings.Repeat("x", 300), "b": strings.Repeat("y", 300), "c": "z"},
	}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(map[string]string{"app": "web", "of": name})
	o.SetAnnotations(map[string]string{"example.com/applied": strings.Repeat("0", 40)})
	o.SetResourceVersion(version)
	o.SetManagedFields(fields)
	return o
}

// BenchmarkCreation measures what the API server takes for the creation of an object, one after the other: by a POST, and by
// server-side apply as the engine creates children.
func BenchmarkCreation(b *testing.B) {
	for name, create := range map[string]func(ctx context.Context, namespace, name string) error{
		"POST": func(ctx context.Context, namespace, name string) error {
			_, err := childrenIn(namespace).Create(ctx, madeFrom(namespace, name, ""), metav1.CreateOptions{FieldManager: "op"})
			return err
		},
		"apply": func(ctx context.Context, namespace, name string) error {
			_, err := childrenIn(namespace).Apply(ctx, name, madeFrom(namespace, name, ""), metav1.ApplyOptions{FieldManager: "op"})
			return err
		},
		"apply with the version that none has": func(ctx context.Context, namespace, name string) error {
			_, err := childrenIn(namespace).Apply(ctx, name, madeFrom(namespace, name, "1"), metav1.ApplyOptions{FieldManager: "op"})
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			namespace, before, n := plane.Namespace(b), serverSeconds(b), 0
			for ; b.Loop(); n++ {
				if err := create(b.Context(), namespace, fmt.Sprintf("child-%d", n)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(1000*(serverSeconds(b)-before)/float64(n), "server-ms/op")
		})
	}
}

// serverSeconds is the processor time that the API server has taken.
func serverSeconds(b *testing.B) float64 {
	b.Helper()
	text, err := plane.Kubernetes().CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var seconds float64
		if n, _ := fmt.Sscanf(line, "process_cpu_seconds_total %g", &seconds); n == 1 {
			return seconds
		}
	}
	b.Fatal("the API server does not tell its processor time")
	return 0
}

// TestOnlyAnApplyLeavesWhatAnApplyLeaves holds why children are created by server-side apply, though a POST is cheaper: whatever
// managedFields a POST brings, its fields are those of an update, which a later apply does not take away.
func TestOnlyAnApplyLeavesWhatAnApplyLeaves(t *testing.T) {
	t.Parallel()
	namespace := plane.Namespace(t)
	client := childrenIn(namespace)
	applied, err := client.Apply(t.Context(), "applied", madeFrom(namespace, "applied", "1"), metav1.ApplyOptions{FieldManager: "op"})
	if err != nil {
		t.Fatal(err)
	}
	posted, err := client.Create(t.Context(), madeFrom(namespace, "posted", "", applied.GetManagedFields()...), metav1.CreateOptions{FieldManager: "op"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range posted.GetManagedFields() {
		if e.Operation != metav1.ManagedFieldsOperationUpdate {
			t.Errorf("a POST leaves an entry of the operation %s", e.Operation)
		}
	}
	less := madeFrom(namespace, "posted", "")
	unstructured.RemoveNestedField(less.Object, "data", "c")
	again, err := client.Apply(t.Context(), "posted", less, metav1.ApplyOptions{FieldManager: "op", Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if c, _, _ := unstructured.NestedString(again.Object, "data", "c"); c != "z" {
		t.Error("the apply has taken away a field that a POST of the same manager had set: children can be created by a POST")
	}
}

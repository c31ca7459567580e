// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/cluster/crd"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
	"github.com/handwerk-dev/handwerk/engine/operate/migrate"
	"github.com/handwerk-dev/handwerk/handlers"
)

// versioned is an operator of Foos with the versions v1 and v2, in a group and a namespace of the test's own.
type versioned struct {
	group, namespace string
	running          *cluster.Running
}

// operator returns the operator. Settings are lines of the schema.
func (v *versioned) operator(t *testing.T, served bool, settings string) *dsl.Operator {
	t.Helper()
	op, err := config.Parse("operator.yaml", fmt.Appendf(nil, `
apiVersion: handwerk.dev/v1alpha1
kind: Operator
metadata: {name: versions}
settings: {leaderElection: {mode: none}}
resources:
- resource: foos.v2.%s
  schema:
    kind: Foo
    spec: {size: integer | required=true, color: string | required=true, address: string}
    status: {seen: integer}
    %s
    versions:
    - name: v1
      served: %v
      deprecated: use v2
      spec: {replicas: integer | required=true, hint: string}
      convert: {move: {spec.replicas: spec.size}, to: {spec.color: blue}}
  handlers: [{id: seen, set: {status: {seen: "${self.spec.size}"}}}]
`, v.group, settings, served), handlers.Standard())
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// begin installs the CRD and runs the operator.
func (v *versioned) begin(t *testing.T, op *dsl.Operator) {
	t.Helper()
	v.install(t, op)
	v.running = cluster.Run(t, op, engine.Settings{Config: plane.Config(), Namespace: v.namespace, Webhooks: engine.Webhooks{Address: "127.0.0.1:0"}})
}

func (v *versioned) install(t *testing.T, op *dsl.Operator) {
	t.Helper()
	if err := crd.Install(t.Context(), op, plane.Config(), crd.Settings{Log: testLog(t, "crd")}); err != nil {
		t.Fatal(err)
	}
}

func (v *versioned) foos(version string) dynamic.ResourceInterface {
	return plane.Dynamic().Resource(schema.GroupVersionResource{Group: v.group, Version: version, Resource: "foos"}).Namespace(v.namespace)
}

// foo returns an object.
func (v *versioned) foo(version, name string, spec map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": v.group + "/" + version, "kind": "Foo", "spec": spec}}
	out.SetName(name)
	return out
}

// try repeats a request until it succeeds: there is no event for the API server's view of CRDs and of webhooks.
func try(t *testing.T, doing string, request func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	var last error
	if wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := request(ctx); err != nil {
			last = err
			return false, nil
		}
		return true, nil
	}) != nil {
		t.Fatalf("%s: %v", doing, last)
	}
}

// has waits until an object in a version has a spec.
func (v *versioned) has(t *testing.T, version, name string, want map[string]any) (out *unstructured.Unstructured) {
	t.Helper()
	try(t, "reading "+name+" as "+version, func(ctx context.Context) (err error) {
		if out, err = v.foos(version).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		if diff := cmp.Diff(want, out.Object["spec"]); diff != "" {
			return fmt.Errorf("spec (-want +got):\n%s", diff)
		}
		return nil
	})
	return out
}

// stored returns the versions that the API server says are stored.
func (v *versioned) stored(t *testing.T) []string {
	t.Helper()
	definition, err := plane.Dynamic().Resource(crds).Get(t.Context(), "foos."+v.group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	return out
}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

func newVersioned(t *testing.T) *versioned {
	v := &versioned{group: "versions-" + rand.String(6) + ".example.com", namespace: plane.Namespace(t)}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, version := range []string{"v2", "v1"} {
			_ = v.foos(version).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}) // the namespace ends with them
		}
		_ = plane.Dynamic().Resource(crds).Delete(ctx, "foos."+v.group, metav1.DeleteOptions{})
	})
	return v
}

func TestClientsOfBothVersionsSeeOneObject(t *testing.T) {
	v := newVersioned(t)
	v.begin(t, v.operator(t, true, ""))
	try(t, "creating a Foo as v1", func(ctx context.Context) error {
		_, err := v.foos("v1").Create(ctx, v.foo("v1", "old", map[string]any{"replicas": int64(3), "hint": "h"}), metav1.CreateOptions{})
		return err
	})
	v.has(t, "v2", "old", map[string]any{"size": int64(3), "color": "blue"})
	v.has(t, "v1", "old", map[string]any{"replicas": int64(3), "hint": "h"})
	if _, err := v.foos("v2").Create(t.Context(), v.foo("v2", "new", map[string]any{"size": int64(1), "color": "red", "address": "a"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	v.has(t, "v1", "new", map[string]any{"replicas": int64(1)})
	if _, err := v.foos("v1").Patch(t.Context(), "new", types.MergePatchType, []byte(`{"spec": {"replicas": 5}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	v.has(t, "v2", "new", map[string]any{"size": int64(5), "color": "red", "address": "a"})
	applied := v.foo("v1", "new", map[string]any{"hint": "applied"})
	if _, err := v.foos("v1").Apply(t.Context(), "new", applied, metav1.ApplyOptions{FieldManager: "client"}); err != nil {
		t.Fatal(err)
	}
	v.has(t, "v1", "new", map[string]any{"replicas": int64(5), "hint": "applied"})
	v.has(t, "v2", "new", map[string]any{"size": int64(5), "color": "red", "address": "a"})
	try(t, "awaiting the handler", func(ctx context.Context) error {
		o, err := v.foos("v1").Get(ctx, "new", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if seen, _, _ := unstructured.NestedInt64(o.Object, "status", "seen"); seen != 5 {
			return fmt.Errorf("status.seen is %d", seen)
		}
		return nil
	})
}

func TestTheStoredVersionChangesWhileTheOperatorRestarts(t *testing.T) {
	v := newVersioned(t)
	v.begin(t, v.operator(t, true, "storage: v1"))
	try(t, "creating a Foo as v2", func(ctx context.Context) error {
		_, err := v.foos("v2").Create(ctx, v.foo("v2", "a", map[string]any{"size": int64(2), "color": "red"}), metav1.CreateOptions{})
		return err
	})
	for i := range 5 {
		if _, err := v.foos("v1").Create(t.Context(), v.foo("v1", fmt.Sprintf("b%d", i), map[string]any{"replicas": int64(i)}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	v.running.Stop(t)
	if _, err := v.foos("v2").Get(t.Context(), "a", metav1.GetOptions{}); err == nil {
		t.Error("an object was read in another version than the stored one without the operator")
	}
	if _, err := v.foos("v1").Get(t.Context(), "a", metav1.GetOptions{}); err != nil {
		t.Errorf("reading the stored version without the operator: %v", err)
	}
	// The informers of the operator need the conversions that it serves.
	v.begin(t, v.operator(t, true, ""))
	v.has(t, "v2", "a", map[string]any{"size": int64(2), "color": "red"})
	v.has(t, "v2", "b3", map[string]any{"size": int64(3), "color": "blue"})
	if diff := cmp.Diff([]string{"v1", "v2"}, v.stored(t)); diff != "" {
		t.Errorf("stored before (-want +got):\n%s", diff)
	}
	m, err := migrate.New(t.Context(), plane.Dynamic(), "foos."+v.group, 2)
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, err := range m.Pages(t.Context()) {
		if pages++; err != nil {
			t.Fatal(err)
		}
	}
	if got := m.Done(); pages != 3 || got.Written != 6 || len(got.Failed) != 0 {
		t.Errorf("%d pages, and %+v", pages, got)
	}
	if err := m.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v2"}, v.stored(t)); diff != "" {
		t.Errorf("stored after (-want +got):\n%s", diff)
	}
	v.running.Stop(t)
	v.begin(t, v.operator(t, false, ""))
	try(t, "asking for a version that is not served", func(ctx context.Context) error {
		if _, err := v.foos("v1").Get(ctx, "a", metav1.GetOptions{}); err == nil {
			return fmt.Errorf("v1 is served")
		}
		return nil
	})
	v.has(t, "v2", "a", map[string]any{"size": int64(2), "color": "red"})
}

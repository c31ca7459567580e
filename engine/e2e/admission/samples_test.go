// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl/config"
	"github.com/handwerk-dev/handwerk/samples/functions"
)

// sampled runs a sample, and returns a client that keeps warnings, and one for a resource of the sample in a namespace of its own.
func sampled(t *testing.T, name, version, resource string) (dynamic.Interface, *warnings, dynamic.ResourceInterface) {
	t.Helper()
	op, err := config.Load([]string{"../../../samples/" + name + "/operator.yaml"}, functions.Registry())
	if err != nil {
		t.Fatal(err)
	}
	runOperator(t, op, plane.Config(), plane.Namespace(t))
	client, seen := warned(t)
	gvr := schema.GroupVersionResource{Group: "samples.handwerk.dev", Version: version, Resource: resource}
	return client, seen, client.Resource(gvr).Namespace(plane.Namespace(t))
}

// create creates an object of a sample.
func create(t *testing.T, in dynamic.ResourceInterface, apiVersion, kind, name string, spec map[string]any, dry ...string) (*unstructured.Unstructured, error) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec}}
	return in.Create(t.Context(), o, metav1.CreateOptions{DryRun: dry})
}

// TestTheSampleOfPolicies runs samples/policy against a real API server.
func TestTheSampleOfPolicies(t *testing.T) {
	t.Parallel()
	client, seen, databases := sampled(t, "policy", "v1alpha1", "databases")
	large := map[string]any{"storage": int64(100)}
	await(t, "a large Database is protected and has its creator", func() bool {
		o, err := create(t, databases, "samples.handwerk.dev/v1alpha1", "Database", "orders", large, metav1.DryRunAll)
		if err != nil {
			return false
		}
		protected, _, _ := unstructured.NestedBool(o.Object, "spec", "protected")
		return protected && o.GetAnnotations()["samples.handwerk.dev/creator"] != "" && o.GetLabels()["engine"] == "postgres"
	})
	if _, err := create(t, databases, "samples.handwerk.dev/v1alpha1", "Database", "orders", large); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, patch, want string }{
		{"storage does not shrink", `{"spec":{"storage":50}}`, "storage cannot shrink from 100 to 50"},
		{"the engine stays", `{"spec":{"engine":"mysql"}}`, "the engine of a Database stays"},
	} {
		await(t, tc.name, func() bool {
			_, err := databases.Patch(t.Context(), "orders", types.MergePatchType, []byte(tc.patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), tc.want)
		})
	}
	await(t, "a protected Database stays", func() bool {
		err := databases.Delete(t.Context(), "orders", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "set spec.protected of orders to false")
	})
	team := plane.Namespace(t)
	plane.Objects("namespaces.v1", "").Patch(t, team, `{"metadata":{"labels":{"team":"a"}}}`)
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(team)
	await(t, "an image without a version has a warning", func() bool {
		seen.take()
		_, err := create(t, pods, "v1", "Pod", "a", map[string]any{"containers": []any{map[string]any{"name": "a", "image": "busybox"}}}, metav1.DryRunAll)
		return err == nil && slices.ContainsFunc(seen.take(), func(text string) bool { return strings.Contains(text, "image without a version") })
	})
}

// TestTheSampleOfDefaults runs samples/defaults, whose rules are functions in Go, against a real API server.
func TestTheSampleOfDefaults(t *testing.T) {
	t.Parallel()
	_, seen, caches := sampled(t, "defaults", "v1alpha1", "caches")
	try := func(name, tier string, dry ...string) (*unstructured.Unstructured, error) {
		return create(t, caches, "samples.handwerk.dev/v1alpha1", "Cache", name, map[string]any{"tier": tier}, dry...)
	}
	await(t, "a large Cache has the memory of its tier", func() bool {
		o, err := try("a", "large", metav1.DryRunAll)
		if err != nil {
			return false
		}
		memory, _, _ := unstructured.NestedString(o.Object, "spec", "memory")
		return memory == "4Gi"
	})
	await(t, "an unknown tier is refused", func() bool {
		_, err := try("a", "huge", metav1.DryRunAll)
		return err != nil && strings.Contains(err.Error(), `there is no tier "huge"`)
	})
	if _, err := try("a", "large"); err != nil {
		t.Fatal(err)
	}
	await(t, "a second large Cache is refused", func() bool { // once the index has the first
		_, err := try("b", "large", metav1.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "has the large Cache a already")
	})
	await(t, "one replica has a warning", func() bool {
		seen.take()
		_, err := try("c", "small", metav1.DryRunAll)
		return err == nil && slices.ContainsFunc(seen.take(), func(text string) bool { return strings.Contains(text, "one replica") })
	})
}

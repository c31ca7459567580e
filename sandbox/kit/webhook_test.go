// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// sized is an operator that decides about Foos in Go.
func sized() *dsl.Operator {
	op := dsl.New("sized")
	op.Resource(foos, func(foo *dsl.Resource) {
		foo.Mutate("default", func(_ context.Context, r *dsl.AdmissionRequest) error {
			if _, found, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); !found {
				r.Patch.Set("spec.size", 3)
			}
			return nil
		})
		foo.Validate("size", func(_ context.Context, r *dsl.AdmissionRequest) error {
			if size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size"); size > 5 {
				return dsl.Deny(metav1.StatusReasonInvalid, "size is at most 5, and not %d", size)
			}
			return nil
		})
	})
	return op
}

// TestTheClusterAsksTheOperator holds that admission handlers in Go are asked in the kit, in virtual time, also after a restart, and that
// nobody writes while the operator is down.
func TestTheClusterAsksTheOperator(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: foos, Kind: "Foo"})
		create := func(name string, spec map[string]any) (*unstructured.Unstructured, error) {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": name}, "spec": spec}}
			foos := dynamic.NewForConfigOrDie(c.Config()).Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"})
			return foos.Namespace("default").Create(t.Context(), o, metav1.CreateOptions{})
		}
		decides := func(when string) {
			t.Helper()
			if o, err := create("a-"+when, map[string]any{}); err != nil || o.Object["spec"].(map[string]any)["size"] != int64(3) {
				t.Errorf("%s: without a size it is %v (%v)", when, o, err)
			}
			if _, err := create("b-"+when, map[string]any{"size": int64(6)}); err == nil || !strings.Contains(err.Error(), "size is at most 5, and not 6") {
				t.Errorf("%s: of a size of 6 the API server says %v", when, err)
			}
		}
		p := c.Start(sized())
		c.Settle()
		decides("at-first")
		c.Advance(24 * time.Hour)
		decides("later")
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := create("c", map[string]any{}); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			t.Errorf("while the operator is down the API server says %v", err)
		}
		c.Start(sized())
		c.Settle()
		decides("after-a-restart")
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/e2e/cluster"
)

// TestAnAPIServerThatIsBackIsFoundSoon: the API server is stopped for 20 s, and started again. What is changed then is handled without
// the waits that grew meanwhile: changes of objects, of their children, and the write that failed for the outage. The log says how soon,
// and virtual time holds it: see TestAChangeDuringAnOutageIsHandledSoon. Of a CRD the API server says for the first seconds that it is to
// be asked again after 5 s.
func TestAnAPIServerThatIsBackIsFoundSoon(t *testing.T) {
	t.Parallel()
	own := plane.Own(t, "samples/foo/crd.yaml")
	op := dsl.New("found")
	size := func(o *unstructured.Unstructured) int64 {
		n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		return n
	}
	op.Resource(foos, func(r *dsl.Resource) {
		r.Owns("configmaps.v1")
		r.OnReconcile("mirror", func(ctx context.Context, r *dsl.Request) error {
			_, err := r.Children.Apply(ctx, map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": r.Object.GetName()}, "data": map[string]any{"n": fmt.Sprint(size(r.Object))},
			})
			return err
		})
		r.Every(time.Second, "report", func(_ context.Context, r *dsl.Request) error {
			r.Patch.Annotate("example.com/seen", time.Now().Format(time.RFC3339Nano))
			return nil
		})
	})
	shows := func(n int64) func(o *unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool {
			text, _, _ := unstructured.NestedString(o.Object, "data", "n")
			return text == fmt.Sprint(n)
		}
	}
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		own.Objects(foos, "default").Create(t, foo(name, 1))
	}
	cluster.Run(t, op, engine.Settings{Config: own.Config()})
	for _, name := range names {
		own.Objects("configmaps.v1", "default").Await(t, name, "to be there", shows(1))
	}

	own.Halt()
	<-time.After(20 * time.Second) // the outage itself
	own.Resume()
	began := time.Now()
	for i, name := range names {
		own.Objects(foos, "default").Patch(t, name, `{"spec":{"replicas":2}}`)
		own.Objects("configmaps.v1", "default").Await(t, name, "the change to be handled", shows(2))
		if i == 0 {
			t.Logf("the first change was handled %v after the API server was ready", time.Since(began).Round(10*time.Millisecond))
		}
	}
	own.Objects("configmaps.v1", "default").Patch(t, "a", `{"data":{"n":"7"}}`)
	own.Objects("configmaps.v1", "default").Await(t, "a", "to be put back", shows(2))
	for _, name := range names {
		own.Objects(foos, "default").Await(t, name, "a report", func(o *unstructured.Unstructured) bool {
			at, err := time.Parse(time.RFC3339Nano, o.GetAnnotations()["example.com/seen"])
			return err == nil && at.After(began)
		})
	}
	t.Logf("all was handled after %v", time.Since(began).Round(10*time.Millisecond))
}

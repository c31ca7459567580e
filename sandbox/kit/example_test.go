// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// Website is the operator under test: it keeps a Deployment for each Website and reports how many
// of its replicas are available.
func Website(op *dsl.Operator) {
	op.Resource("websites.v1.example.com", func(website *dsl.Resource) {
		website.Owns("deployments.v1.apps")
		website.OnReconcile("deployment", func(ctx context.Context, r *dsl.Request) error {
			replicas, _ := dsl.MustParsePath("spec.replicas").In(r.Object.Object)
			deployment, err := r.Children.Apply(ctx, map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{"name": r.Object.GetName()},
				"spec":     map[string]any{"replicas": replicas},
			})
			if err != nil {
				return err
			}
			available, _ := dsl.MustParsePath("status.availableReplicas").In(deployment.Object)
			r.Patch.SetStatus("available", available)
			return nil
		})
		website.OnDelete("farewell", func(context.Context, *dsl.Request) error {
			return dsl.Temporary(errors.New("the DNS entry is still there"), 30*time.Second)
		}, dsl.Retries(2), dsl.Release())
	})
}

// testWebsite tests the operator from outside, by what is in the cluster.
func testWebsite(t *testing.T, c *kit.Cluster) {
	c.Serve(kit.Resource{Name: "websites.v1.example.com", Kind: "Website"})
	op := dsl.New("website")
	Website(op)
	p := c.Start(op)

	c.Create(`
		apiVersion: example.com/v1
		kind: Website
		metadata: {name: blog}
		spec: {replicas: 2}
	`)
	c.Settle()
	if c.Get("deployments.v1.apps", "default", "blog") == nil {
		t.Error("there is no Deployment")
	}

	// The test plays the Deployment controller.
	c.Update("deployments.v1.apps", "default", "blog", func(o *unstructured.Unstructured) {
		o.Object["status"] = map[string]any{"availableReplicas": int64(2)}
	})
	c.Settle()
	website := c.Get("websites.v1.example.com", "default", "blog")
	if available, _ := dsl.MustParsePath("status.available").In(website.Object); available != int64(2) {
		t.Errorf("available is %v", available)
	}

	// Nothing has changed, so nothing is written.
	p.Writes()
	p.Restart()
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("a restart wrote %v", writes)
	}

	// The farewell fails three times, 30 seconds apart; no second of it is spent.
	c.Delete("websites.v1.example.com", "default", "blog")
	c.Advance(59 * time.Second)
	if c.Get("websites.v1.example.com", "default", "blog") == nil {
		t.Error("the Website did not wait for its farewell")
	}
	c.Advance(time.Second)
	if c.Get("websites.v1.example.com", "default", "blog") != nil {
		t.Error("the Website is still there")
	}
}

func Example() {
	var t *testing.T // as in func TestWebsite(t *testing.T)
	kit.Run(t, testWebsite)
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package enginetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/enginetest"
)

const web = `
apiVersion: example.com/v1
kind: Foo
metadata: {name: web}
spec: {replicas: 2}
`

// operator keeps one Deployment per Foo and reports its available replicas.
func operator() *dsl.Operator {
	op := dsl.New("foo")
	op.Resource("foos.v1.example.com", func(foo *dsl.Resource) {
		foo.Owns("deployments.v1.apps")
		foo.OnReconcile("deployment", func(ctx context.Context, r *dsl.Request) error {
			replicas, _ := dsl.MustParsePath("spec.replicas").In(r.Object.Object)
			made, err := r.Children.Apply(ctx, map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{"name": r.Object.GetName()},
				"spec":     map[string]any{"replicas": replicas},
			})
			if err != nil {
				return err
			}
			if available, found := dsl.MustParsePath("status.availableReplicas").In(made.Object); found {
				r.Patch.SetStatus("available", available)
			}
			return nil
		})
	})
	return op
}

func TestExample(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, c *enginetest.Cluster) {
		c.Serve(enginetest.Resource{Name: "foos.v1.example.com", Kind: "Foo"})
		p := c.Start(operator())
		c.Create(web)
		c.Settle()
		for _, w := range p.Writes() {
			t.Log(w, w.Body)
		}
		t.Log(c.Get("deployments.v1.apps", "default", "web"))
		c.Advance(time.Hour)
		t.Log(p.Writes())
		t.Log(p.Engine().Ready())
	})
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestAnObjectAtRestIsSmall holds that what few objects have is dropped of one that was written, and is at rest.
func TestAnObjectAtRestIsSmall(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		op := dsl.New("op")
		op.Resource(scene.Foos, func(foo *dsl.Resource) {
			foo.Owns(scene.Deployments)
			foo.OnReconcile("child", scene.KeepsDeployment)
			foo.OnReconcile("status", func(_ context.Context, r *dsl.Request) error {
				r.Patch.SetStatus("size", 1)
				return nil
			})
		})
		p := c.Start(op)
		c.Create(scene.Web)
		c.Settle()
		if !engine.Rests(p.Engine(), "default", "web") {
			t.Error("more is remembered of the object than of any")
		}
	})
}

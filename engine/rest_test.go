// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestRestIsReportedOnceForEachBurst is law 8: an operator at rest holds nothing that it needs no more, and does nothing.
func TestRestIsReportedOnceForEachBurst(t *testing.T) {
	kit.Run(t, func(t *testing.T, c *kit.Cluster) {
		c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
		op, rests := dsl.New("op"), atomic.Int64{}
		op.Resource(scene.Foos, func(foo *dsl.Resource) { foo.OnReconcile("keep", scene.Succeeds) })
		c.Start(op, func(s *engine.Settings) { s.Rested = func() { rests.Add(1) } })
		rested := func(when string, want int64) {
			t.Helper()
			c.Advance(time.Hour)
			if got := rests.Swap(0); got != want {
				t.Errorf("%s: rest was reported %d times, want %d", when, got, want)
			}
		}
		rested("after the start", 1)
		rested("while nothing happens", 0)
		for n := range 400 {
			c.Create(map[string]any{"apiVersion": "example.com/v1", "kind": "Foo", "metadata": map[string]any{"name": fmt.Sprint("foo-", n)}})
		}
		rested("after many objects", 1)
		c.Create(scene.Web)
		rested("after one", 0)
	})
}

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

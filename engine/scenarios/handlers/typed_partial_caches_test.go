// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// TestTypedCodeWithinOtherCodeSeesNoPartOfAnObject holds that typed code whose struct has more than the cache holds is not
// called, also where its type could not be known before: the handler fails for good, and says which fields it would miss.
func TestTypedCodeWithinOtherCodeSeesNoPartOfAnObject(t *testing.T) {
	var called atomic.Int32
	work := dsl.Typed(func(context.Context, *dsl.TypedRequest[typedFoo]) error { called.Add(1); return nil })
	stay := dsl.TypedDaemon(func(context.Context, *dsl.TypedDaemonRequest[typedFoo]) error { called.Add(1); return nil })
	for name, declare := range map[string]func(*dsl.Resource){
		"a handler": func(foo *dsl.Resource) {
			foo.OnReconcile("look", func(ctx context.Context, r *dsl.Request) error { return work(ctx, r) })
		},
		"a step": func(foo *dsl.Resource) {
			foo.OnReconcile("look", dsl.Steps(func(context.Context, *dsl.Request) error { return nil }, work))
		},
		"a sub-handler": func(foo *dsl.Resource) {
			foo.OnReconcile("look", func(_ context.Context, r *dsl.Request) error { r.Handle("part", work); return nil })
		},
		"a daemon": func(foo *dsl.Resource) {
			foo.Daemon("look", func(ctx context.Context, r *dsl.DaemonRequest) error { return stay(ctx, r) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			kit.Run(t, func(t *testing.T, c *kit.Cluster) {
				c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
				s := scene.NewStage(t, c)
				s.Operator = dsl.New("op")
				s.Operator.Resource(scene.Foos, func(foo *dsl.Resource) {
					foo.Keep = []dsl.Path{{"spec", "color"}}
					declare(foo)
				})
				called.Store(0)
				var all scene.Texts
				all.Launch(s)
				s.Create(scene.Web)
				s.Advance(time.Minute)
				const want = "its type handlers_test.typedFoo has spec.size"
				if text := all.All(s, scene.Foos); !strings.Contains(text, want) || called.Load() > 0 {
					t.Errorf("it was called %d times, and nothing says %q:\n%s", called.Load(), want, text)
				}
			})
		})
	}
}

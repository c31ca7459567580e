// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/observe/why"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// BenchmarkWhy measures the answer to the question why, with 20,000 objects in the cache: while nothing else is to be done, and while
// the workers are busy with a handler that takes a while for each of them.
func BenchmarkWhy(b *testing.B) {
	const count = 20_000
	for name, takes := range map[string]time.Duration{"at rest": 0, "with a backlog": 5 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			x := newBustle(b, count)
			x.launch(inGo(func(x *bustle, foo *dsl.Resource) {
				foo.OnReconcile("slow", func(context.Context, *dsl.Request) error {
					if x.runs.Add(1); takes > 0 {
						<-time.After(takes)
					}
					return nil
				})
				foo.OnReconcile("color", scene.Succeeds, dsl.Field("spec.color"))
			})(x), engine.Settings{Config: x.cluster.Config()})
			x.await(map[bool]int64{true: count, false: 1}[takes == 0])
			var longest time.Duration
			for n := 0; b.Loop(); n++ {
				begun := time.Now()
				a, err := x.engine.Why(context.Background(), why.Question{Resource: "foos", Namespace: "default", Name: fmt.Sprint("foo-", (n*7919)%count)})
				if err != nil || a.Without != "" || a.Unseen != "" {
					b.Fatalf("no answer by a pass: %+v, %v", a, err)
				}
				longest = max(longest, time.Since(begun))
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "ms-longest")
			x.end()
		})
	}
}

// BenchmarkStatus measures the answer of operator status, with 20,000 objects in the cache.
func BenchmarkStatus(b *testing.B) {
	const count = 20_000
	x := newBustle(b, count)
	x.launch(inGo(func(x *bustle, foo *dsl.Resource) {
		foo.OnReconcile("count", func(context.Context, *dsl.Request) error {
			x.runs.Add(1)
			return nil
		})
	})(x), engine.Settings{Config: x.cluster.Config()})
	x.await(count)
	for b.Loop() {
		if _, err := x.engine.Ask(context.Background(), "status", nil); err != nil {
			b.Fatal(err)
		}
	}
	x.end()
}

// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// BenchmarkDaemons measures what each of 1,000 daemons that wait costs: the heap, stacks and goroutines of an operator
// that has them, less those of one that has none.
func BenchmarkDaemons(b *testing.B) {
	const count = 1000
	for b.Loop() {
		var with, without runtime.MemStats
		none := atRest(b, count, false, &without)
		some := atRest(b, count, true, &with)
		per := func(a, b uint64) float64 { return (float64(a) - float64(b)) / count }
		b.ReportMetric(per(with.HeapAlloc, without.HeapAlloc), "heap-B/daemon")
		b.ReportMetric(per(with.StackInuse, without.StackInuse), "stack-B/daemon")
		b.ReportMetric(float64(some-none)/count, "goroutines/daemon")
	}
}

// atRest measures an operator whose handlers have run for all objects, with daemons or without, and counts goroutines.
func atRest(b *testing.B, count int, daemons bool, into *runtime.MemStats) (goroutines int) {
	b.Helper()
	c := kit.New(b)
	c.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"})
	for i := range count {
		c.Create(strings.Replace(scene.Web, "name: web", fmt.Sprintf("name: web-%d", i), 1))
	}
	var ready sync.WaitGroup
	op := dsl.New("op")
	op.Settings.LeaderElection.Mode = dsl.LeaderNone
	op.Resource(scene.Foos, func(foo *dsl.Resource) {
		if ready.Add(count); !daemons {
			foo.OnReconcile("rest", func(context.Context, *dsl.Request) error { ready.Done(); return nil })
			return
		}
		foo.Daemon("watch", func(ctx context.Context, _ *dsl.DaemonRequest) error {
			ready.Done()
			<-ctx.Done()
			return nil
		}, dsl.NoFinalizer())
	})
	e, err := engine.New(op, engine.Settings{Config: c.Config()})
	if err != nil {
		b.Fatal(err)
	}
	run, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- e.Run(run) }()
	ready.Wait()
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(into)
	goroutines = runtime.NumGoroutine()
	stop()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return goroutines
}

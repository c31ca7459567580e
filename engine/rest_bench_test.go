// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
	"github.com/handwerk-dev/handwerk/sandbox/kit"
)

// bustle is an operator at work on many Foos, in real time: a bubble is for tests alone.
type bustle struct {
	b       *testing.B
	cluster *kit.Cluster
	runs    atomic.Int64 // of the handler
	engine  *engine.Engine
	stop    context.CancelFunc
	done    chan error
}

func newBustle(b *testing.B, count int) *bustle {
	b.Helper()
	x := &bustle{b: b, cluster: kit.New(b)}
	x.cluster.Serve(kit.Resource{Name: scene.Foos, Kind: "Foo"}, kit.Resource{Name: "bars.v1.example.org", Kind: "Bar"})
	note := strings.Repeat("x", 300)
	for n := range count {
		x.cluster.Create(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Foo", "spec": map[string]any{"size": n, "color": "red", "note": note},
			"metadata": map[string]any{"name": fmt.Sprintf("foo-%d", n), "labels": map[string]any{"app": "foo"}},
		})
	}
	return x
}

// start has an operator whose handler sets a status, and returns when it has done so for every object and is at rest.
func (x *bustle) start(count int) {
	x.b.Helper()
	x.launch(inGo(sizeInStatus)(x), engine.Settings{Config: x.cluster.Config()})
	x.await(int64(count))
}

// inGo is an operator for Foos.
func inGo(define func(*bustle, *dsl.Resource)) func(*bustle) *dsl.Operator {
	return func(x *bustle) *dsl.Operator {
		op := dsl.New("op")
		op.Settings.LeaderElection.Mode = dsl.LeaderNone
		op.Resource(scene.Foos, func(foo *dsl.Resource) { define(x, foo) })
		return op
	}
}

// launch runs an operator.
func (x *bustle) launch(op *dsl.Operator, s engine.Settings) {
	x.b.Helper()
	e, err := engine.New(op, s)
	if err != nil {
		x.b.Fatal(err)
	}
	x.engine = e
	running, stop := context.WithCancel(context.Background())
	x.stop, x.done = stop, make(chan error, 1)
	go func() { x.done <- e.Run(running) }()
}

// await waits until the handler has run so often, and the engine is at rest.
func (x *bustle) await(runs int64) {
	x.b.Helper()
	for end := time.Now().Add(5 * time.Minute); x.runs.Load() < runs; {
		if <-time.After(20 * time.Microsecond); time.Now().After(end) {
			x.b.Fatalf("the handler ran %d times, want %d", x.runs.Load(), runs)
		}
	}
}

func (x *bustle) end() {
	x.stop()
	if err := <-x.done; err != nil {
		x.b.Error(err)
	}
}

func liveHeap() int64 {
	goruntime.GC()
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkRest measures what an object costs in memory that was handled and is at rest: its bytes in the cache, and all
// that the engine keeps of it. What the cluster in memory holds is not counted.
func BenchmarkRest(b *testing.B) {
	const count = 20_000
	for b.Loop() {
		x := newBustle(b, count)
		x.start(count)
		<-time.After(2 * time.Second) // the echoes of its writes
		with := liveHeap()
		x.end()
		b.ReportMetric(float64(with-liveHeap())/count, "B/object")
	}
}

// BenchmarkReads measures what an object costs at rest whose handler in Go reads one field beside 1 KB that no other object has, and
// says so or does not. What the cluster in memory holds is not counted.
func BenchmarkReads(b *testing.B) {
	const count = 5000
	for name, options := range map[string][]dsl.Option{"all fields": nil, "one field": {dsl.Reads("spec.size", "status.size")}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				x := newBustle(b, 0)
				for n := range count {
					note := make([]byte, 512)
					_, _ = rand.Read(note) // it never fails
					x.cluster.Create(scene.FooIn("default", fmt.Sprintf("foo-%d", n), map[string]any{"size": n, "note": hex.EncodeToString(note)}))
				}
				x.launch(inGo(func(x *bustle, foo *dsl.Resource) {
					foo.OnReconcile("size", func(ctx context.Context, r *dsl.Request) error {
						x.runs.Add(1)
						return scene.ReportsSize(ctx, r)
					}, options...)
				})(x), engine.Settings{Config: x.cluster.Config()})
				x.await(count)
				<-time.After(2 * time.Second) // the echoes of its writes
				with := liveHeap()
				x.end()
				b.ReportMetric(float64(with-liveHeap())/count, "B/object")
			}
		})
	}
}

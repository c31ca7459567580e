// SPDX-FileCopyrightText: The Handwerk Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/handwerk-dev/handwerk/dsl"
	"github.com/handwerk-dev/handwerk/engine"
	"github.com/handwerk-dev/handwerk/engine/scenarios/scene"
)

// BenchmarkPass measures what is done for one object, in time and allocations.
func BenchmarkPass(b *testing.B) {
	b.Run("a change that is answered with a status", func(b *testing.B) { benchChange(b, sizeInStatus) })
	for _, n := range []int{1, 10, 50, 100, 200} {
		b.Run(fmt.Sprintf("a change for one of %d handlers", n), func(b *testing.B) { benchChange(b, amongOthers(n)) })
	}
	passes := map[string]struct {
		pass     func(e *engine.Engine, namespace, name string)
		runs     int // of the handler, in each reconcile
		operator func(x *bustle) *dsl.Operator
	}{
		"a resync that changes nothing":                    {engine.Resync, 1, inGo(sizeInStatus)},
		"nothing is due":                                   {engine.Look, 0, inGo(sizeInStatus)},
		"nothing is due of ten handlers":                   {engine.Look, 0, inGo(manyHandlers)},
		"a resync in which a child stays as it is":         {engine.Resync, 1, inGo(barAndSize)},
		"a resync in which a child stays as it is in YAML": {engine.Resync, 1, barAndSizeInYAML},
		"nothing is due of an object that has a child":     {engine.Look, 0, inGo(barAndSize)},
	}
	for _, n := range []int{1, 10, 50, 100, 200} {
		passes[fmt.Sprintf("a resync of %d handlers", n)] = struct {
			pass     func(e *engine.Engine, namespace, name string)
			runs     int
			operator func(x *bustle) *dsl.Operator
		}{engine.Resync, n, inGo(handlersThatRun(n))}
	}
	for name, one := range passes {
		b.Run(name, func(b *testing.B) {
			const count = 100
			x := newBustle(b, count)
			x.launch(one.operator(x), engine.Settings{Config: x.cluster.Config()})
			x.await(int64(count * max(one.runs, 1)))
			<-time.After(time.Second) // the echoes of its writes
			before := x.runs.Load()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				one.pass(x.engine, "default", fmt.Sprintf("foo-%d", n%count))
			}
			if got, want := x.runs.Load()-before, int64(b.N*one.runs); got != want {
				b.Errorf("the handler ran %d times, want %d", got, want)
			}
			x.end()
		})
	}
}

// benchChange measures an update, with what the cluster in memory does for that and for the status that answers it.
func benchChange(b *testing.B, define func(*bustle, *dsl.Resource)) {
	const count = 100
	x := newBustle(b, count)
	x.launch(inGo(define)(x), engine.Settings{Config: x.cluster.Config()})
	x.await(count)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		x.cluster.Update(scene.Foos, "default", fmt.Sprintf("foo-%d", n%count), func(foo *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(foo.Object, int64(count+n), "spec", "size")
		})
		x.await(int64(count + n + 1))
	}
	x.end()
}

// sizeInStatus sets a status.
func sizeInStatus(x *bustle, foo *dsl.Resource) {
	foo.OnReconcile("status", func(_ context.Context, r *dsl.Request) error {
		size, _, _ := unstructured.NestedInt64(r.Object.Object, "spec", "size")
		r.Patch.SetStatus("size", size)
		x.runs.Add(1)
		return nil
	})
}

// handlersThatRun has n handlers that run at each resync and change nothing.
func handlersThatRun(n int) func(*bustle, *dsl.Resource) {
	return func(x *bustle, foo *dsl.Resource) {
		for i := range n {
			foo.OnReconcile(fmt.Sprintf("handler-%d", i), func(context.Context, *dsl.Request) error {
				x.runs.Add(1)
				return nil
			})
		}
	}
}

// amongOthers sets a status for a size, beside handlers of other fields.
func amongOthers(n int) func(*bustle, *dsl.Resource) {
	return func(x *bustle, foo *dsl.Resource) {
		sizeInStatus(x, foo)
		for i := range n - 1 {
			foo.OnReconcile(fmt.Sprintf("other-%d", i), scene.Succeeds, dsl.Field(fmt.Sprintf("spec.other-%d", i)))
		}
	}
}

// manyHandlers has nine handlers beside, that look at fields.
func manyHandlers(x *bustle, foo *dsl.Resource) {
	sizeInStatus(x, foo)
	for n := range 9 {
		foo.OnReconcile(fmt.Sprintf("other-%d", n), scene.Succeeds, dsl.Field("spec.color"))
	}
}

// barAndSize keeps a child, and sets a status.
func barAndSize(x *bustle, foo *dsl.Resource) {
	foo.Owns("bars.v1.example.org")
	foo.OnReconcile("bar", scene.KeepsBar)
	sizeInStatus(x, foo)
}

// barAndSizeInYAML is barAndSize for authors of YAML.
func barAndSizeInYAML(x *bustle) *dsl.Operator {
	op, err := scene.ParseYAML(`{resource: foos.v1.example.com, resync: 1h, owns: [bars.v1.example.org], handlers: [
		{id: bar, apply: {bar: {apiVersion: example.org/v1, kind: Bar, metadata: {name: "${self.metadata.name}"}}}},
		{id: status, set: {status: {size: "${self.spec.size}"}}}]}`)
	if err != nil {
		x.b.Fatal(err)
	}
	for _, h := range op.Handlers() {
		if of := h.Func; h.ID == "status" {
			h.Func = func(ctx context.Context, r *dsl.Request) error {
				x.runs.Add(1)
				return of(ctx, r)
			}
		}
	}
	op.Settings.LeaderElection.Mode = dsl.LeaderNone
	return op
}
